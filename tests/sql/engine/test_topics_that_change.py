"""What readers and writers say of a topic that is not there, and what they do when it changes under them."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import penstock
from penstock import Admin, NewPartitions
from penstock.sql.engine.queries import RunningQuery
from penstock.sql.errors import SqlError
from penstock.sql.server.parts import Parts

SOON_S = 30.0


@pytest.fixture(scope="module")
def parts(new_parts: Callable[[ExitStack], Parts]) -> Iterator[Parts]:
    with ExitStack() as stack:
        yield new_parts(stack)


@pytest.fixture
def admin(parts: Parts) -> Iterator[Admin]:
    with Admin(bootstrap_servers=parts.kafka.bootstrap_servers) as made:
        yield made


def stream(parts: Parts, name: str, kind: str = "STREAM") -> None:
    key = "PRIMARY KEY" if kind == "TABLE" else "KEY"
    parts.engine.execute(
        f"CREATE {kind} {name} (k VARCHAR {key}, n INT) WITH (kafka_topic='{name}', value_format='JSON', partitions=1);"
        f"INSERT INTO {name} VALUES ('a', 1);"
    )


@contextmanager
def opened(parts: Parts, text: str, start: str = "earliest") -> Iterator[RunningQuery]:
    (parsed,) = parts.engine.parse(text, {})
    query = parts.queries.open(parsed, {"auto.offset.reset": start})
    try:
        yield query
    finally:
        query.close()


def taken(query: RunningQuery, count: int) -> list[list[Any]]:
    rows: list[list[Any]] = []
    deadline = time.monotonic() + SOON_S
    while len(rows) < count:
        assert time.monotonic() < deadline, rows
        rows += [row.columns for row in query.take(count - len(rows), 0.2) or []]
    return rows


def end_of(query: RunningQuery) -> None:
    deadline = time.monotonic() + SOON_S
    while query.take(100, 0.2) is not None:
        assert time.monotonic() < deadline, "the query goes on"


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_deleted_topic_is_an_error_in_words(parts: Parts, admin: Admin, kind: str) -> None:
    name = f"gone_{kind.lower()}"
    stream(parts, name, kind)
    admin.delete_topics([name])
    remedy = f"Make the topic again, or DROP {kind} {name.upper()}."
    began = time.monotonic()
    for text in ("SELECT * FROM {};", "SELECT * FROM {} EMIT CHANGES;"):
        with (
            pytest.raises(SqlError, match=f"Could not find topic '{name}'.*{remedy}"),
            opened(parts, text.format(name)),
        ):
            pass
    missing = f"Failed to insert values into '{name.upper()}'. Its topic '{name}' does not exist. {remedy}"
    with pytest.raises(SqlError, match=missing):
        parts.engine.execute(f"INSERT INTO {name} VALUES ('b', 2);")
    with pytest.raises(SqlError, match=missing):
        parts.engine.insert_rows(name.upper(), [{"k": "b", "n": 2}])
    assert time.monotonic() - began < SOON_S


def test_print_of_no_topic_names_one_that_is_near(parts: Parts) -> None:
    stream(parts, "orders")
    told = r"Could not find topic 'Order', .* case-sensitive. Did you mean 'orders'\?"
    with pytest.raises(SqlError, match=told), opened(parts, "PRINT 'Order';"):
        pass


@pytest.mark.parametrize("text", ["SELECT * FROM {} EMIT CHANGES;", "PRINT {} FROM BEGINNING;"])
def test_a_topic_that_is_deleted_ends_what_follows_it(parts: Parts, admin: Admin, text: str) -> None:
    name = f"followed_{text[:5].lower()}"
    stream(parts, name)
    with opened(parts, text.format(name)) as query:
        assert taken(query, 1)
        admin.delete_topics([name])
        with pytest.raises(SqlError, match=f"Could not find topic '{name}'"):
            end_of(query)


@pytest.mark.parametrize(("start", "old"), [("latest", []), ("earliest", [["a", 1]])])
def test_new_partitions_are_followed_from_their_beginning(
    parts: Parts, admin: Admin, start: str, old: list[list[Any]]
) -> None:
    name = f"grows_{start}"
    stream(parts, name)
    with opened(parts, f"SELECT * FROM {name} EMIT CHANGES;", start) as query, opened(parts, f"PRINT {name};") as lines:
        admin.create_partitions({name: NewPartitions(total_count=3)})
        with penstock.Producer(bootstrap_servers=parts.kafka.bootstrap_servers) as producer:
            for number in range(3):
                producer.send(name, b'{"N": %d}' % number, f"k{number}".encode(), partition=number)
        assert sorted(taken(query, len(old) + 3)) == sorted([*old, ["k0", 0], ["k1", 1], ["k2", 2]])
        printed = [line for (line,) in taken(lines, 5)]
    assert printed[:2] == ["Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING"]
    assert sorted(line[-1] for line in printed[2:]) == ["0", "1", "2"]


def test_a_reader_that_goes_early_leaves_no_task(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    stream(parts, "early")
    with caplog.at_level(logging.ERROR, "asyncio"):
        for _ in range(5):
            with opened(parts, "SELECT * FROM early EMIT CHANGES;"), opened(parts, "PRINT early;"):
                gc.collect()
        gc.collect()
        assert not caplog.records


def test_print_shows_what_the_records_hold(parts: Parts) -> None:
    parts.engine.execute(
        "CREATE STREAM sums (k VARCHAR KEY, d DECIMAL(32, 2)) "
        "WITH (kafka_topic='sums', value_format='JSON', partitions=1);"
        "INSERT INTO sums (ROWTIME, k, d) VALUES (0, 'a', 123456789012345678901234567890.12);"
        "INSERT INTO sums (ROWTIME, k, d) VALUES (1, 'a', 12.50);"
        "INSERT INTO sums (ROWTIME, d) VALUES (2, NULL);"
    )
    with opened(parts, "PRINT sums FROM BEGINNING LIMIT 2;") as query:
        lines = [line for (line,) in taken(query, 4)]
        end_of(query)
    assert lines == [
        "Key format: KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 1970/01/01 00:00:00.000 Z, key: a, value: {"D":123456789012345678901234567890.12}, partition: 0',
        'rowtime: 1970/01/01 00:00:00.001 Z, key: a, value: {"D":12.50}, partition: 0',
    ]
