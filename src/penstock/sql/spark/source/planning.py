"""Which offsets make up the next batch. One planner per query, in a process of its own that Spark keeps.

`latest` is asked again and again. When there is nothing new it waits for the next record, a second at most: the planner
holds a fetch at the brokers behind the last record of every partition, which they answer when there is one. So an idle
query costs a request per second, and a busy one does not wait. The waiting has a client of its own (`Watch`): a broker
answers the requests of one connection in their order, and questions would wait behind that fetch.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from penstock import Consumer, KafkaTimeout, TopicInfo, TopicPartition, UnknownTopicOrPartition
from penstock.sql.spark.source.admission import cut_by_time, proportional, rows_between
from penstock.sql.spark.source.errors import LOSS_REMEDY, DataLossError, SourceError
from penstock.sql.spark.source.offsets import EARLIEST, LATEST, Offsets, described
from penstock.sql.spark.source.options import WATCH_MS, OffsetRule, ReadOptions
from penstock.sql.spark.source.ranges import OffsetRange

log = logging.getLogger(__name__)

_SETTLING_MS: Final = 5_000
"""A topic that is not found for so long is looked up anew. Leaders change faster than that."""


class Watch:
    """Waits for the next record behind some offsets."""

    def __init__(self, options: ReadOptions) -> None:
        self._consumer = Consumer(options.watching_client())
        self._watched: Offsets = {}
        """Where the waiting fetch stands; a partition that is not here must be sought."""

    def wait(self, ends: Offsets) -> None:
        """Until there is a record behind one of these, or a second is over."""
        if self._watched.keys() != ends.keys():
            self._consumer.assign(list(ends))
        for partition, offset in ends.items():
            if self._watched.get(partition) != offset:
                self._consumer.seek(partition, offset)
        batch = self._consumer.consume_arrow(WATCH_MS, max_rows=1)
        # Where a record was taken, the fetch has moved on.
        self._watched = {} if batch.num_rows else dict(ends)

    def close(self) -> None:
        self._consumer.close()


class Planner:
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._consumer = Consumer(options.planning_client())
        self._partitions: list[TopicPartition] = []
        self._topic_ids: dict[str, UUID] = {}
        self._looked_at = -float("inf")
        self._ends: Offsets = {}
        """As last seen."""
        self._watch = Watch(options)
        self._target: Offsets | None = None
        self._time_reached_ms: int | None = None
        self._given_at = time.monotonic()
        self._shown: Offsets | None = None
        """What the group that shows progress was last told."""

    # What Spark asks.

    def initial(self) -> Offsets:
        return self._resolve(self._options.starting, "startingOffsets")

    def final(self) -> Offsets:
        """Where a batch read ends."""
        return self._resolve(self._options.ending, "endingOffsets")

    def latest(self, start: Offsets, rows_max: int | None) -> Offsets:
        """Where the batch that begins at `start` ends; `start` itself when nothing came."""
        begin, end = self._bounds(start)
        self._show_progress(start)
        if self._target is None and not self._is_enough(begin, end):
            self._watch.wait(self._ends)
            begin, end = self._bounds(start)
        if not self._is_enough(begin, end):
            return start
        self._given_at = time.monotonic()
        if rows_max is None or rows_between(begin, end) <= rows_max:
            self._time_reached_ms = None
            return end
        return self._admit(begin, end, rows_max)

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What lies between two offsets; a partition that is new in `end` begins at its beginning."""
        new = [partition for partition in end if partition not in start]
        begins = self._consumer.beginning_offsets(new) if new else {}
        ranges = []
        for partition in sorted(end):
            begin = start.get(partition, begins.get(partition, 0))
            if begin > end[partition]:
                # Allowed by failOnDataLoss=false: the partition was made anew.
                begin = self._consumer.beginning_offsets([partition])[partition]
            ranges.append(OffsetRange(partition=partition, start=begin, end=end[partition]))
        return ranges

    def stop_at_present(self) -> None:
        """Nothing that comes from now on is for this query (AvailableNow)."""
        self._look_up(force=True)
        self._target = self._consumer.end_offsets(self._partitions)

    def reported(self) -> Offsets:
        return self._ends

    def close(self) -> None:
        self._watch.close()
        self._consumer.close()

    def _show_progress(self, offsets: Offsets) -> None:
        """Only for those who watch the group's lag: a failure is told in the log and changes nothing."""
        if self._options.commit_group is not None and offsets != self._shown:
            self._shown = dict(offsets)
            self._consumer.commit_async(dict(offsets), _commit_ended)

    # What there is.

    def _bounds(self, start: Offsets) -> tuple[Offsets, Offsets]:
        """Begin and end of all that could be read now."""
        self._look_up()
        self._ends = self._present_ends()
        end = dict(self._ends)
        if self._target is not None:
            end = {tp: min(offset, self._target[tp]) for tp, offset in end.items() if tp in self._target}
            end |= {tp: offset for tp, offset in start.items() if tp in end and offset > end[tp]}
        self._check_loss(start, end)
        new = [partition for partition in end if partition not in start]
        begin = self._consumer.beginning_offsets(new) if new else {}
        return {partition: start.get(partition, begin.get(partition, 0)) for partition in end}, end

    def _present_ends(self) -> Offsets:
        """A topic that was deleted since it was looked up is noticed here first."""
        try:
            return self._consumer.end_offsets(self._partitions, _SETTLING_MS)
        except (KafkaTimeout, UnknownTopicOrPartition):
            self._look_up(force=True)
            return self._consumer.end_offsets(self._partitions)

    def _check_loss(self, start: Offsets, end: Offsets) -> None:
        gone = sorted({partition.topic for partition in start} - {partition.topic for partition in end})
        shrunk = {tp: offset for tp, offset in start.items() if tp in self._ends and self._ends[tp] < offset}
        if not gone and not shrunk:
            return
        told = (
            f"The topic {', '.join(gone)} does not exist any more, and its offsets were to be read on."
            if gone
            else f"The topic was made anew, or its log was cut: the query has read up to {described(shrunk)}, but the "
            f"partitions end at {described({tp: self._ends[tp] for tp in shrunk})}."
        )
        told += f" {LOSS_REMEDY}"
        if self._options.fail_on_data_loss:
            raise DataLossError(told)
        log.warning("%s", told)

    def _is_enough(self, begin: Offsets, end: Offsets) -> bool:
        if begin == end:
            return False
        if self._target is not None or rows_between(begin, end) >= self._options.rows_per_trigger_min:
            return True
        return time.monotonic() - self._given_at >= self._options.trigger_delay_max_s

    def _admit(self, begin: Offsets, end: Offsets, rows_max: int) -> Offsets:
        low = self._first_time(list(end)) if self._time_reached_ms is None else self._time_reached_ms
        high = int(time.time() * 1000) + 1
        cut = cut_by_time(begin, end, rows_max, low, high, lambda ms: self._offsets_at(ms, end)) if low < high else None
        if cut is None:
            return proportional(begin, end, rows_max)
        found, self._time_reached_ms = cut
        return found

    def _first_time(self, partitions: list[TopicPartition]) -> int:
        found = self._consumer.offsets_for_times(dict.fromkeys(partitions, 0))
        return min((each.timestamp for each in found.values() if each is not None), default=0)

    def _offsets_at(self, time_ms: int, end: Offsets) -> Offsets:
        found = self._consumer.offsets_for_times(dict.fromkeys(end, time_ms))
        return {partition: end[partition] if each is None else each.offset for partition, each in found.items()}

    # Topics.

    def _look_up(self, *, force: bool = False) -> None:
        """The partitions there are, asked again now and then: some may be new."""
        now = time.monotonic()
        if not force and now - self._looked_at < self._options.metadata_ttl_s:
            return
        if self._options.assigned:
            self._partitions = list(self._options.assigned)
        else:
            topics = self._consumer.list_topics()
            chosen = self._chosen(topics)
            self._check_ids(chosen)
            self._partitions = [
                TopicPartition(topic.name, each.partition) for topic in chosen for each in topic.partitions
            ]
        self._looked_at = now

    def _chosen(self, topics: dict[str, TopicInfo]) -> list[TopicInfo]:
        if self._options.pattern is not None:
            pattern = re.compile(self._options.pattern)
            return [info for name, info in sorted(topics.items()) if pattern.fullmatch(name)]
        missing = [name for name in self._options.topics if name not in topics]
        if missing and not self._partitions:
            raise SourceError(f"The topic {', '.join(missing)} does not exist: create it, or correct its name.")
        return [topics[name] for name in self._options.topics if name in topics]

    def _check_ids(self, chosen: Iterable[TopicInfo]) -> None:
        for topic in chosen:
            known = self._topic_ids.setdefault(topic.name, topic.topic_id)
            if known != topic.topic_id:
                told = f"The topic {topic.name} was deleted and made anew while it was read."
                if self._options.fail_on_data_loss:
                    raise DataLossError(f"{told} {LOSS_REMEDY}")
                log.warning("%s", told)
                self._topic_ids[topic.name] = topic.topic_id

    # Rules.

    def _resolve(self, rule: OffsetRule, option: str) -> Offsets:
        self._look_up(force=True)
        partitions = self._partitions
        match rule.kind:
            case "earliest":
                return self._consumer.beginning_offsets(partitions)
            case "latest":
                return self._consumer.end_offsets(partitions)
            case "timestamp":
                return self._by_time(dict.fromkeys(partitions, rule.timestamp), rule)
        wanted = rule.offsets
        if self._options.typed is not None:
            # A statement's offsets: partitions that were added after it are new from their first record on.
            wanted = dict.fromkeys(partitions, EARLIEST) | wanted
        self._check_all_named(wanted, option)
        if rule.kind == "timestamps":
            return self._by_time(wanted, rule)
        return self._by_offset(wanted)

    def _by_offset(self, wanted: Offsets) -> Offsets:
        begins = self._consumer.beginning_offsets([tp for tp, offset in wanted.items() if offset == EARLIEST])
        ends = self._consumer.end_offsets([tp for tp, offset in wanted.items() if offset == LATEST])
        return {**wanted, **begins, **ends}

    def _by_time(self, wanted: Offsets, rule: OffsetRule) -> Offsets:
        found = self._consumer.offsets_for_times(wanted)
        none = [partition for partition, each in found.items() if each is None]
        if none and rule.strategy == "error":
            raise SourceError(
                f"There is no record as late as {wanted[none[0]]} in {', '.join(map(str, sorted(none)))}: choose an "
                f"earlier time, or set startingOffsetsByTimestampStrategy=latest."
            )
        ends = self._consumer.end_offsets(none) if none else {}
        return ends | {partition: each.offset for partition, each in found.items() if each is not None}

    def _check_all_named(self, wanted: Offsets, option: str) -> None:
        named, there = set(wanted), set(self._partitions)
        if named != there:
            missing, unknown = _listed(there - named), _listed(named - there)
            raise SourceError(f"{option} must name every partition: missing {missing}, unknown {unknown}.")


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"


def _commit_ended(offsets: object, error: Exception | None) -> None:
    if error is not None:
        log.info("the offsets of a query were not committed: %s", error)
