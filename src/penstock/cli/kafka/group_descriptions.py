"""What `kafka-consumer-groups --describe` shows of a group: offsets with lag, members, or the state."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.cli.failures import Failed
from penstock.cli.kafka.parsing import Parsed

if TYPE_CHECKING:
    from penstock.base.types import TopicPartition
    from penstock.client.admin import Admin, GroupDescription

MISSING = "-"


def describe(admin: Admin, groups: Sequence[str], options: Parsed, *, timeout_ms: int | None) -> int:
    from penstock.base.errors import ErrorCode, KafkaError

    verbose = options.has("verbose")
    failed = 0
    for name in groups:
        try:
            group = admin.describe_groups([name], timeout_ms=timeout_ms)[name]
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            if len(groups) == 1:
                raise Failed(f"Group {name} not found.") from None
            print(f"\nError: Consumer group '{name}' does not exist.", file=sys.stderr)
            failed = 1
            continue
        _tell_state(group)
        if options.has("members"):
            rows = _member_rows(group, verbose)
        elif options.has("state"):
            rows = _state_rows(group, verbose)
        else:
            rows = _offset_rows(admin, group, verbose, timeout_ms)
            if len(rows) == 1:
                # Without an offset and without a member there is nothing to show, not even the columns.
                continue
        print()
        for line in rows:
            print(line)
    return failed


def _tell_state(group: GroupDescription) -> None:
    if not group.members:
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state.value in ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"):
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    sys.stderr.flush()


def aligned(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Columns at least this wide; 0 is the last column, which is not filled up."""
    filled = [
        max(width, *(len(row[number]) for row in rows)) if width else 0 for number, width in enumerate(widths)
    ]  # fmt: skip
    return [" ".join(f"{cell:<{width}}" for cell, width in zip(row, filled, strict=True)) for row in rows]


def _offset_rows(admin: Admin, group: GroupDescription, verbose: bool, timeout_ms: int | None) -> list[str]:
    committed = admin.list_group_offsets([group.group_id], timeout_ms=timeout_ms)[group.group_id]
    owned = {tp for member in group.members for tp in member.assignment}
    ends = _ends(admin, {*owned, *committed}, timeout_ms)
    header = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    rows = [header]

    def row(tp: TopicPartition, owner: Sequence[str]) -> list[str]:
        found, end = committed.get(tp), ends.get(tp)
        at = None if found is None else found.offset
        lag = MISSING if at is None or end is None else str(end - at)
        cells = [group.group_id, tp.topic, str(tp.partition), _text(at), _text(end), lag, *owner]
        if verbose:
            cells.insert(3, MISSING if found is None or found.leader_epoch < 0 else str(found.leader_epoch))
        return cells

    for member in sorted(group.members, key=lambda each: -len(each.assignment)):
        owner = (member.member_id, member.host, member.client_id)
        rows += [row(tp, owner) for tp in member.assignment]
        if not member.assignment:
            rows.append([group.group_id, *[MISSING] * (6 if verbose else 5), *owner])
    rows += [row(tp, (MISSING,) * 3) for tp in sorted(committed) if tp not in owned and committed[tp] is not None]
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 0]
    if verbose:
        header.insert(3, "LEADER-EPOCH")
        widths.insert(3, 15)
    return aligned(rows, widths)


def _text(number: int | None) -> str:
    return MISSING if number is None else str(number)


def _ends(admin: Admin, partitions: Iterable[TopicPartition], timeout_ms: int | None) -> Mapping[TopicPartition, int]:
    """Where the logs end; partitions that are gone are left out."""
    from penstock.client.admin import AdminErrors, OffsetSpec
    from penstock.client.errors import UnknownTopicOrPartition

    wanted = dict.fromkeys(sorted(partitions), OffsetSpec.LATEST)
    try:
        found = admin.list_offsets(wanted, timeout_ms=timeout_ms) if wanted else {}
    except AdminErrors as errors:
        found = errors.successes
    except UnknownTopicOrPartition:
        found = {}
    return {tp: each.offset for tp, each in found.items()}


def _member_rows(group: GroupDescription, verbose: bool) -> list[str]:
    with_instance = any(member.group_instance_id for member in group.members)
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows, widths = [header], [15, 15, 15, 15, 15]
    if verbose:
        header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [15, 20, 15, 20]
    for member in sorted(group.members, key=lambda each: -len(each.assignment)):
        cells = [group.group_id, member.member_id, member.host, member.client_id, str(len(member.assignment))]
        if verbose:
            cells += [
                _text(member.member_epoch),
                assignment_text(member.assignment),
                _text(group.target_assignment_epoch),
                MISSING if member.target_assignment is None else assignment_text(member.target_assignment),
            ]
        if with_instance:
            cells.insert(2, member.group_instance_id or "")
        rows.append(cells)
    if with_instance:
        header.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, 17)
    lines = aligned(rows, widths)
    return lines if verbose else [f"{line} " for line in lines]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;payments:2`, or a dash."""
    by_topic: dict[str, list[str]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(str(tp.partition))
    return ";".join(f"{topic}:{','.join(each)}" for topic, each in by_topic.items()) or MISSING


def _state_rows(group: GroupDescription, verbose: bool) -> list[str]:
    node = group.coordinator
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    where = f"{node.host}:{node.port}  ({node.id})"
    cells = [group.group_id, where, group.assignor or MISSING, group.state.value, str(len(group.members))]
    widths = [15, 25, 20, 20, 0]
    if verbose:
        header[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells[4:4] = [_text(group.group_epoch), _text(group.target_assignment_epoch)]
        widths[4:4] = [15, 25]
    return aligned([header, cells], widths)
