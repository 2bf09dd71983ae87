"""The processing log as Spark's Python workers write it: at least once, and never in the way of the good rows."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock import KafkaError
from penstock.sql.formats.bad_records import BadRecord, log_entry, summary_entry
from penstock.sql.processing_log import processing_error
from penstock.sql.spark.source.clients import PRODUCERS

log = logging.getLogger(__name__)

TOLD_MAX: Final = 1_000
"""Bad records of one task, or failures in one batch of rows, that are told one by one; the rest is counted."""

_RECORD_CHARACTERS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLog:
    """`topic` None: what is bad is only counted in the worker's own log."""

    client: Mapping[str, str]
    topic: str | None
    logger: str

    def tell_bad_records(self, records: Sequence[BadRecord], untold: int) -> None:
        log.warning("%d records could not be read, first %s", len(records) + untold, records[0].text)
        now_ms = _now_ms()
        entries = [log_entry(each, self.logger, now_ms) for each in records]
        if untold:
            entries.append(summary_entry(records[-1].topic, untold, self.logger, now_ms))
        self._send(entries)

    def tell_failures(self, failures: Failures) -> None:
        now_ms = _now_ms()
        entries = [
            processing_error(logger=self.logger, time_ms=now_ms, reason=reason, record=record)
            for reason, record in failures.told
        ]
        if failures.untold:
            text = f"{failures.untold} more failures like these"
            entries.append(processing_error(logger=self.logger, time_ms=now_ms, reason=text, record=None))
        self._send(entries)

    def _send(self, entries: list[bytes]) -> None:
        if self.topic is None:
            return
        try:
            with PRODUCERS.lent(dict(self.client)) as producer:
                for delivery in producer.send_many(self.topic, entries):
                    delivery.result()
        except KafkaError as error:
            log.warning("the processing log %s could not be written: %s", self.topic, error)


@dataclass(slots=True)
class Failures:
    """What went wrong while functions were computed for a batch of rows."""

    told: list[tuple[str, str]] = field(default_factory=list)
    untold: int = 0

    def add(self, reason: str, arguments: Sequence[Any]) -> None:
        if len(self.told) < TOLD_MAX:
            self.told.append((reason, json.dumps(list(arguments), default=str)[:_RECORD_CHARACTERS_MAX]))
        else:
            self.untold += 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
