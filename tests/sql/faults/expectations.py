"""What ten continuous queries must have written, computed from their input alone.

Stateless queries, joins of rows and EMIT FINAL: the same records, each once, and in the order of their input per key.
EMIT CHANGES: the same last value per key, and no value on the way that no batching of the input could give: each value
must be the aggregate of the first n records of its key, with n growing. Sessions, HAVING and tables that are made of
tables: the same rows in the end, and no others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVENTS, PARTNERS, TICKS, USERS = "events", "partners", "ticks", "users"
WINDOW_MS = 2_000
SESSION_GAP_MS = 1_000
LEVELS = ("Gold", "Platinum", "Silver")

STATEMENTS = f"""
CREATE STREAM events (user VARCHAR KEY, id INT, n INT) WITH (kafka_topic='{EVENTS}', value_format='JSON');
CREATE STREAM partners (user VARCHAR KEY, id INT, m INT) WITH (kafka_topic='{PARTNERS}', value_format='JSON');
CREATE STREAM ticks (kind VARCHAR KEY, n INT) WITH (kafka_topic='{TICKS}', value_format='JSON');
CREATE TABLE users (user VARCHAR PRIMARY KEY, level VARCHAR) WITH (kafka_topic='{USERS}', value_format='JSON');

CREATE STREAM chosen AS SELECT user, id, n * 2 AS twice FROM events WHERE n % 3 = 0;
CREATE TABLE per_window AS
  SELECT user, COUNT(*) AS c, SUM(n) AS total FROM events WINDOW TUMBLING (SIZE 2 SECONDS) GROUP BY user;
CREATE TABLE totals AS SELECT user, COUNT(*) AS c, SUM(n) AS total FROM events GROUP BY user;
CREATE STREAM joined AS
  SELECT e.id AS id, e.n AS n, p.m AS m FROM events e JOIN partners p WITHIN 1 MINUTE ON e.id = p.id;
CREATE STREAM levels AS SELECT e.user, e.id AS id, u.level AS level FROM events e LEFT JOIN users u ON e.user = u.user;
CREATE TABLE finals AS
  SELECT kind, COUNT(*) AS c FROM ticks
  WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY kind EMIT FINAL;
CREATE TABLE even AS SELECT user, COUNT(*) AS c FROM events GROUP BY user HAVING COUNT(*) % 2 = 0;
CREATE TABLE sessions AS SELECT kind, COUNT(*) AS c FROM ticks WINDOW SESSION (1 SECOND) GROUP BY kind;
CREATE TABLE ranked AS SELECT t.user, t.total AS total, u.level AS level FROM totals t JOIN users u ON t.user = u.user;
CREATE TABLE by_last_digit AS SELECT total % 10 AS digit, COUNT(*) AS c FROM totals GROUP BY total % 10;
"""
OUTPUTS = (
    "CHOSEN", "PER_WINDOW", "TOTALS", "JOINED", "LEVELS", "FINALS", "EVEN", "SESSIONS", "RANKED", "BY_LAST_DIGIT",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it lies in a topic. The window's start stands at the end of the key, where there is one."""

    key: bytes
    time_ms: int
    value: Any


Topics = dict[str, list[Row]]


def level_of(user: str) -> str | None:
    """Every fifth user is not in the table."""
    number = int(user.removeprefix("u"))
    return None if number % 5 == 0 else LEVELS[number % len(LEVELS)]


def differences(topics: Topics) -> list[str]:
    """Every sentence names something lost, doubled, reordered or wrong; none when all is as it must be."""
    events, partners = topics[EVENTS], topics[PARTNERS]
    chosen = [
        (row.key, {"ID": row.value["id"], "TWICE": row.value["n"] * 2}) for row in events if row.value["n"] % 3 == 0
    ]
    totals = {key: steps[-1] for key, steps in _steps(events, windowed=False).items()}
    levels = [(row.key, {"ID": row.value["id"], "LEVEL": level_of(row.key.decode())}) for row in events]
    return [
        *_records("CHOSEN", chosen, topics["CHOSEN"]),
        *_records("LEVELS", levels, topics["LEVELS"]),
        *_records("JOINED", _joined(events, partners), topics["JOINED"]),
        *_records("FINALS", _final(topics[TICKS]), topics["FINALS"], ordered=False),
        *_changes("TOTALS", _steps(events, windowed=False), topics["TOTALS"]),
        *_changes("PER_WINDOW", _steps(events, windowed=True), topics["PER_WINDOW"]),
        *_rows("EVEN", {key: {"C": each["C"]} for key, each in totals.items() if each["C"] % 2 == 0}, topics["EVEN"]),
        *_rows("SESSIONS", _sessions(topics[TICKS]), topics["SESSIONS"]),
        *_rows("RANKED", _ranked(totals), topics["RANKED"]),
        *_rows("BY_LAST_DIGIT", _by_last_digit(totals), topics["BY_LAST_DIGIT"], empty={"C": 0}),
    ]


def last_totals(events: Iterable[Row]) -> list[list[Any]]:
    return sorted([key.decode(), *steps[-1].values()] for key, steps in _steps(events, windowed=False).items())


def last_windows(events: Iterable[Row]) -> list[list[Any]]:
    return sorted(
        [key[:-8].decode(), int.from_bytes(key[-8:], "big"), *steps[-1].values()]
        for key, steps in _steps(events, windowed=True).items()
    )


Records = Sequence[tuple[bytes, Any]]


def _records(name: str, wanted: Records, found: Sequence[Row], *, ordered: bool = True) -> Iterator[str]:
    wanted_by_key, found_by_key = _by_key(wanted), _by_key([(row.key, row.value) for row in found])
    for key in sorted(wanted_by_key.keys() | found_by_key.keys()):
        lost = Counter(wanted_by_key[key])
        lost.subtract(found_by_key[key])
        missing, extra = +lost, -lost
        if missing:
            yield f"{name} {key!r}: lost {dict(missing)}"
        if extra:
            yield f"{name} {key!r}: doubled or wrong {dict(extra)}"
        if ordered and not missing and not extra and wanted_by_key[key] != found_by_key[key]:
            yield f"{name} {key!r}: in another order"


def _changes(name: str, steps: dict[bytes, list[dict[str, int]]], found: Sequence[Row]) -> Iterator[str]:
    seen: dict[bytes, int] = {}
    for row in found:
        possible = steps.get(row.key, [])
        count = row.value["C"] if row.value else 0
        if not 0 < count <= len(possible) or possible[count - 1] != row.value:
            yield f"{name} {row.key!r}: {row.value} is no state of its input"
        elif count <= seen.get(row.key, 0):
            yield f"{name} {row.key!r}: {row.value} again, after a count of {seen[row.key]}"
        seen[row.key] = count
    for key, possible in steps.items():
        if seen.get(key) != len(possible):
            yield f"{name} {key!r}: ends at {seen.get(key)} of {len(possible)}"


def _rows(name: str, wanted: Mapping[bytes, Any], found: Iterable[Row], *, empty: Any = None) -> Iterator[str]:
    """The rows of a table in the end; `empty` is the value of a group that has lost its last row."""
    last = {row.key: row.value for row in found}
    rows = {key: value for key, value in last.items() if value is not None and value != empty}
    for key in sorted(wanted.keys() | rows.keys()):
        if wanted.get(key) != rows.get(key):
            yield f"{name} {key!r}: ends as {rows.get(key)} instead of {wanted.get(key)}"


def _steps(events: Iterable[Row], *, windowed: bool) -> dict[bytes, list[dict[str, int]]]:
    """The states of each aggregate, one after each record."""
    steps: defaultdict[bytes, list[dict[str, int]]] = defaultdict(list)
    for row in events:
        key = row.key + _window(row.time_ms) if windowed else row.key
        before = steps[key][-1]["TOTAL"] if steps[key] else 0
        steps[key].append({"C": len(steps[key]) + 1, "TOTAL": before + row.value["n"]})
    return dict(steps)


def _joined(events: Sequence[Row], partners: Sequence[Row]) -> Records:
    numbers = {row.value["id"]: row.value["m"] for row in partners}
    return [
        (row.value["id"].to_bytes(4, "big"), {"N": row.value["n"], "M": numbers[row.value["id"]]})
        for row in events
        if row.value["id"] in numbers
    ]


def _final(ticks: Sequence[Row]) -> Records:
    """Every window but those of the last moment, which are still open."""
    counts = Counter(row.key + _window(row.time_ms) for row in ticks)
    open_window = _window(max(row.time_ms for row in ticks))
    return [(key, {"C": count}) for key, count in counts.items() if not key.endswith(open_window)]


def _sessions(ticks: Sequence[Row]) -> dict[bytes, Any]:
    times: defaultdict[bytes, list[int]] = defaultdict(list)
    for row in ticks:
        times[row.key].append(row.time_ms)
    return {
        key + end.to_bytes(8, "big") + start.to_bytes(8, "big"): {"C": count}
        for key, each in times.items()
        for start, end, count in _sessions_of(sorted(each))
    }


def _sessions_of(times_ms: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    first = 0
    for index in range(1, len(times_ms) + 1):
        if index == len(times_ms) or times_ms[index] - times_ms[index - 1] > SESSION_GAP_MS:
            yield times_ms[first], times_ms[index - 1], index - first
            first = index


def _ranked(totals: Mapping[bytes, dict[str, int]]) -> dict[bytes, Any]:
    levels = {key: level_of(key.decode()) for key in totals}
    return {key: {"TOTAL": totals[key]["TOTAL"], "LEVEL": level} for key, level in levels.items() if level is not None}


def _by_last_digit(totals: Mapping[bytes, dict[str, int]]) -> dict[bytes, Any]:
    counts = Counter(each["TOTAL"] % 10 for each in totals.values())
    return {digit.to_bytes(4, "big"): {"C": count} for digit, count in counts.items()}


def _window(time_ms: int) -> bytes:
    return (time_ms - time_ms % WINDOW_MS).to_bytes(8, "big")


def _by_key(records: Records) -> defaultdict[bytes, list[str]]:
    grouped: defaultdict[bytes, list[str]] = defaultdict(list)
    for key, value in records:
        grouped[key].append(json.dumps(value, sort_keys=True))
    return grouped
