"""`kafka-consumer-groups --reset-offsets` and `--delete-offsets`: what the offsets become, and how that is shown."""

from __future__ import annotations

import csv
import io
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.cli.failures import Failed
from penstock.cli.kafka.group_descriptions import aligned
from penstock.cli.kafka.parsing import Parsed, UsageError

if TYPE_CHECKING:
    from penstock.base.types import TopicPartition
    from penstock.client.admin import Admin, OffsetSpec

Offsets = dict["TopicPartition", int]

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def reset(admin: Admin, groups: Sequence[str], options: Parsed) -> int:
    plans: dict[str, Offsets] = {}
    from_file = read_csv(options.text("from-file"), groups) if options.has("from-file") else None
    active = [group for group in groups if _is_active(admin, group)]
    for group in groups:
        if group in active:
            continue
        if from_file is not None:
            plans[group] = _clamped(admin, from_file.get(group, {}))
        else:
            plans[group] = _planned(admin, group, options)
    if options.has("execute"):
        for group, offsets in plans.items():
            if offsets:
                admin.alter_group_offsets(group, offsets)
    print(_as_csv(plans) if options.has("export") else "\n" + "\n".join(_as_table(plans)))
    return 1 if active else 0


def _is_active(admin: Admin, group: str) -> bool:
    """Whether the group has members, which is told: their offsets are theirs to commit."""
    from penstock.base.errors import ErrorCode, KafkaError

    try:
        described = admin.describe_groups([group])[group]
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    if described.members:
        print(
            f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the current state is "
            f"{described.state.value}."
        )
    return bool(described.members)


def _planned(admin: Admin, group: str, options: Parsed) -> Offsets:
    from penstock.client.admin import OffsetSpec

    committed = {tp: each.offset for tp, each in admin.list_group_offsets([group])[group].items() if each is not None}
    chosen = sorted(committed) if options.has("all-topics") else partitions_of(admin, options.values("topic"))
    if options.has("to-earliest"):
        return _listed(admin, chosen, OffsetSpec.EARLIEST)
    if options.has("to-latest"):
        return _listed(admin, chosen, OffsetSpec.LATEST)
    if options.has("to-offset"):
        offset = options.number("to-offset")
        assert offset is not None
        return _clamped(admin, dict.fromkeys(chosen, offset))
    if options.has("shift-by"):
        return _clamped(admin, _shifted(chosen, committed, options.number("shift-by") or 0))
    if options.has("to-current"):
        ends = _listed(admin, [tp for tp in chosen if tp not in committed], OffsetSpec.LATEST)
        known = _clamped(admin, {tp: committed[tp] for tp in chosen if tp in committed})
        return {tp: known.get(tp, ends.get(tp, 0)) for tp in chosen}
    if options.has("to-datetime"):
        when_ms = parse_datetime(options.text("to-datetime"))
    else:
        when_ms = int((time.time() - parse_duration(options.text("by-duration")).total_seconds()) * 1000)
    found = _listed(admin, chosen, OffsetSpec.at(max(when_ms, 0)))
    late = _listed(admin, [tp for tp, offset in found.items() if offset < 0], OffsetSpec.LATEST)
    for tp in sorted(late):
        # Also when there are records, but none of that time or later.
        print(f"\nWarn: Partition {tp.partition} from topic {tp.topic} is empty. Falling back to latest known offset.")
    return {**found, **late}


def _shifted(chosen: Iterable[TopicPartition], committed: Mapping[TopicPartition, int], by: int) -> Offsets:
    missing = [str(tp) for tp in chosen if tp not in committed]
    if missing:
        raise Failed(
            f"Cannot shift offset for partition {missing[0]} since there is no current committed offset: reset it with "
            "--to-offset, --to-earliest or --to-latest instead."
        )
    return {tp: committed[tp] + by for tp in chosen}


def _listed(admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> Offsets:
    wanted = dict.fromkeys(partitions, spec)
    return {tp: each.offset for tp, each in admin.list_offsets(wanted).items()} if wanted else {}


def _clamped(admin: Admin, offsets: Offsets) -> Offsets:
    """Within the log: an offset before its beginning or after its end becomes that."""
    from penstock.client.admin import OffsetSpec

    first, last = _listed(admin, offsets, OffsetSpec.EARLIEST), _listed(admin, offsets, OffsetSpec.LATEST)
    found = {tp: min(max(offset, first[tp]), last[tp]) for tp, offset in offsets.items()}
    for tp, offset in offsets.items():
        if offset > last[tp]:
            print(
                f"WARN: New offset ({offset}) is higher than latest offset for topic partition {tp}. "
                f"Value will be set to {last[tp]}",
                file=sys.stderr,
            )
        elif offset < first[tp]:
            print(
                f"WARN: New offset ({offset}) is lower than earliest offset for topic partition {tp}. "
                f"Value will be set to {first[tp]}",
                file=sys.stderr,
            )
    return found


def partitions_of(admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
    """`orders`, or `orders:0,2` for some of its partitions."""
    from penstock.base.types import TopicPartition

    found: list[TopicPartition] = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        if colon:
            if not all(each.strip().isdecimal() for each in numbers.split(",")):
                raise UsageError(f"--topic {text} is not of the form topic or topic:0,1,2")
            found += [TopicPartition(name, int(each)) for each in numbers.split(",")]
        else:
            described = admin.describe_topics([name])[name]
            found += [TopicPartition(name, each.partition) for each in described.partitions]
    return list(dict.fromkeys(found))


def parse_datetime(text: str) -> int:
    """Milliseconds of `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it ends in a zone."""
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"--to-datetime takes YYYY-MM-DDThh:mm:ss.sss, and '{text}' is not of that form") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1000)


def parse_duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text.strip())
    parts = {} if found is None else {k: float(v) for k, v in found.groupdict().items() if v and k != "sign"}
    if found is None or not parts:
        raise UsageError(f"--by-duration takes PnDTnHnMnS, such as PT1H30M, and '{text}' is not of that form")
    whole = timedelta(**parts)
    return -whole if found["sign"] == "-" else whole


def read_csv(path: str, groups: Sequence[str]) -> dict[str, Offsets]:
    """`topic,partition,offset`, or with the group before them; without it the offsets are of the only group."""
    from penstock.base.types import TopicPartition

    found: dict[str, Offsets] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            cells = [each.strip() for each in row]
            if not any(cells):
                continue
            if len(cells) == 3 and len(groups) == 1:
                cells.insert(0, groups[0])
            if len(cells) != 4 or not (cells[2].isdecimal() and cells[3].isdecimal()):
                shape = "topic,partition,offset" if len(groups) == 1 else "group,topic,partition,offset"
                raise Failed(f"{path}:{number}: '{','.join(row)}' is not of the form {shape}")
            found.setdefault(cells[0], {})[TopicPartition(cells[1], int(cells[2]))] = int(cells[3])
    return found


def _as_csv(plans: Mapping[str, Offsets]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, offsets in plans.items():
        for tp, offset in sorted(offsets.items()):
            writer.writerow([*([group] if len(plans) > 1 else []), tp.topic, tp.partition, offset])
    return text.getvalue()


def _as_table(plans: Mapping[str, Offsets]) -> list[str]:
    rows = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]]
    for group, offsets in plans.items():
        rows += [[group, tp.topic, str(tp.partition), str(offset)] for tp, offset in sorted(offsets.items())]
    return aligned(rows, [15, 15, 10, 0])


def delete(admin: Admin, group: str, topics: Sequence[str]) -> int:
    partitions = partitions_of(admin, topics)
    whole, failed = _deleted(admin, group, partitions)
    print(f"\nError: {whole}" if whole else f"Request succeeded for deleting offsets from group {group}.")
    width = max([15, *(len(tp.topic) for tp in partitions)])
    print(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for tp in partitions:
        status = f"Error: {failed[tp]}" if tp in failed else "Successful"
        print(f"{tp.topic:<{width}} {tp.partition:<10} {status:<15}")
    return 1 if failed else 0


def _deleted(
    admin: Admin, group: str, partitions: Sequence[TopicPartition]
) -> tuple[str, Mapping[TopicPartition, str]]:
    """What went wrong with the whole, and with each partition."""
    from penstock.base.errors import ErrorCode, KafkaError

    try:
        admin.delete_group_offsets(group, partitions)
    except KafkaError as error:
        failures = getattr(error, "failures", None) or dict.fromkeys(partitions, error)
        failed = {tp: each.message.removeprefix(f"group {group}: ") for tp, each in failures.items()}
        if error.code in (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            return "Encountered some partition-level error, see the follow-up details.", failed
        return error.message.removeprefix(f"group {group}: "), failed
    return "", {}
