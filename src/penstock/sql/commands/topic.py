"""The command topic: one partition, one writer at a time.

Commands are serialised without a lock of our own. The writer is a transactional producer under one id per service:
whoever starts it fences the one before, whose later writes fail. So: be the writer, read to the end, decide on the
catalog that stands there, append in a transaction. A commit that succeeds proves that nobody wrote in between; one that
fails means somebody may have, and everything is done again on the newer catalog.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock import Admin, KafkaError, OffsetSpec, Producer
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.commands.command import Command, encode
from penstock.sql.commands.replay import OnChange, Replay
from penstock.sql.errors import CommandTopicBusyError
from penstock.sql.kafka import KafkaAccess

log = logging.getLogger(__name__)

_APPEND_TIMEOUT_S = 60.0
_APPLY_TIMEOUT_S = 30.0
_BACKOFF_S = 0.05

Decide = Callable[[Catalog, int], Command | None]
"""From the catalog at the end of the topic, and the offset the command will have, to the command; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """`applied`: the replay has come past it. `offset` is None when nothing was appended."""

    command: Command | None
    offset: int | None
    applied: bool


class CommandTopic:
    """`replay` reads, `append` writes. `start` returns at once; `replay.wait_ready` waits for the first replay."""

    def __init__(self, kafka: KafkaAccess, initial: Catalog, on_change: OnChange) -> None:
        self.replay = Replay(kafka, initial, on_change)
        self._kafka = kafka
        self._writing = threading.Lock()
        self._admin: Admin | None = None
        self._producer: Producer | None = None

    @property
    def catalog(self) -> Catalog:
        return self.replay.catalog

    def start(self) -> None:
        self.replay.start()

    def close(self) -> None:
        self.replay.close()
        with self._writing:
            self._drop_producer()
            if self._admin is not None:
                self._admin.close()

    def append(self, decide: Decide) -> Appended:
        """Decide on the newest catalog and append; returns once the command is applied here."""
        self.replay.check_ready()
        with self._writing:
            command, offset = self._append(decide)
        applied = offset is None or self.replay.wait_applied(offset, _APPLY_TIMEOUT_S)
        return Appended(command=command, offset=offset, applied=applied)

    def _append(self, decide: Decide) -> tuple[Command | None, int | None]:
        pending: Command | None = None
        trouble: KafkaError | None = None
        deadline = time.monotonic() + _APPEND_TIMEOUT_S
        for attempt in itertools.count():
            if attempt:
                time.sleep(random.uniform(0, _BACKOFF_S * 2 ** min(attempt, 6)))
            if time.monotonic() > deadline:
                break
            try:
                producer = self._fencing_producer()
                end = self._read_to_end()
                if pending is not None and (kept := self._find(pending, end)) is not None:
                    return pending, kept
                pending = decide(self.catalog, end)
                return pending, None if pending is None else self._commit(producer, pending)
            except KafkaError as error:
                log.info("The command topic must be asked again: %s", error)
                trouble = error
                self._drop_producer()
        raise CommandTopicBusyError(
            f"Could not write the statement into the command topic within {_APPEND_TIMEOUT_S:.0f} s: {trouble}",
            hint="Send the statement again.",
        )

    def _commit(self, producer: Producer, command: Command) -> int:
        producer.begin_transaction()
        delivery = producer.send(self.replay.partition.topic, encode(command), partition=0)
        producer.commit_transaction()
        return int(delivery.result(timeout=_APPLY_TIMEOUT_S).offset)

    def _fencing_producer(self) -> Producer:
        """As long as this producer can commit nobody else has written: another writer would have fenced it."""
        if self._producer is None:
            extra = {"transactional.id": f"{self._kafka.service_id}-commands", "acks": "all"}
            producer = Producer(self._kafka.config("commands", extra))
            try:
                producer.init_transactions()
            except BaseException:
                producer.close(0)
                raise
            self._producer = producer
        return self._producer

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                producer.close(0)
            except KafkaError:
                log.debug("A producer that was fenced did not close in order", exc_info=True)

    def _read_to_end(self) -> int:
        """Wait until the replay has everything that is there now."""
        end = self._end_offset()
        applied = self.replay.wait_applied(end - 1, _APPLY_TIMEOUT_S)
        self.replay.check_ready()
        if not applied:
            raise CommandTopicBusyError(
                f"The command topic was not replayed to its end within {_APPLY_TIMEOUT_S:.0f} s.",
                hint="Look at the server's log, and send the statement again.",
            )
        return end

    def _end_offset(self) -> int:
        if self._admin is None:
            self._admin = Admin(self._kafka.admin_config("commands-admin"))
        asked = {self.replay.partition: OffsetSpec.LATEST}
        listed = self._admin.list_offsets(asked, isolation_level="read_committed")
        return int(listed[self.replay.partition].offset)

    def _find(self, command: Command, end: int) -> int | None:
        """Where a command is whose commit gave no clear answer."""
        commands = self.replay.read_up_to(end)
        return next((offset for offset, found in commands if found.unique == command.unique), None)
