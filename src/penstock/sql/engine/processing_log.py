"""Writes the processing log: best effort, never in the way of a query."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import penstock
from penstock.client.errors import KafkaError
from penstock.sql.formats.bad_records import BadRecord, log_entry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.processing_log import topic_name

log = logging.getLogger(__name__)

_BLOCK_MS = 5_000


class ProcessingLog:
    def __init__(self, kafka: KafkaAccess) -> None:
        self._topic = topic_name(kafka.service_id)
        self._producer = penstock.Producer(kafka.config("processing-log", {"max.block.ms": _BLOCK_MS}))

    def tell(self, entries: Iterable[bytes]) -> None:
        try:
            self._producer.send_many(self._topic, list(entries))
        except KafkaError as error:
            log.warning("Entries of the processing log %s were lost: %s", self._topic, error)

    def tell_bad_records(self, records: list[BadRecord]) -> None:
        now_ms = time.time_ns() // 1_000_000
        self.tell(log_entry(record, "processing.tables", now_ms) for record in records)

    def close(self) -> None:
        self._producer.close(_BLOCK_MS / 1_000)
