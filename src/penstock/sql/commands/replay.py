"""The replay of the command topic: a thread that reads every committed command and applies it to the catalog.

Until it has read what was there at the start nobody is told; then the whole change is told at once, and from then on
each command's change as it comes. A command that cannot be read stops the replay: going on without it would give
another catalog than the other servers have.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock import Admin, Consumer, KafkaError, NewTopic, TopicAlreadyExists, TopicPartition
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.commands.command import Command, apply, decode
from penstock.sql.errors import EngineError, NotReadyError
from penstock.sql.kafka import KafkaAccess

log = logging.getLogger(__name__)

_POLL_MS = 200
_RETRY_S = 1.0
_CLOSE_TIMEOUT_S = 30.0

OnChange = Callable[[Catalog, Catalog], None]


def topic_name(service_id: str) -> str:
    return f"_penstock-sql_{service_id}_commands"


class Replay:
    """`position` is the offset up to which commands have been applied. `failure` says why the replay has stopped."""

    def __init__(self, kafka: KafkaAccess, initial: Catalog, on_change: OnChange) -> None:
        self.partition = TopicPartition(topic_name(kafka.service_id), 0)
        self.catalog = initial
        self.applied: dict[str, Command] = {}
        """The last command of each name."""
        self.ready = False
        self.failure: str | None = None
        self.position = 0
        self._kafka = kafka
        self._initial = initial
        self._on_change = on_change
        self._closed = False
        self._moved = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="penstock-sql-commands", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._moved:
            self._closed = True
            self._moved.notify_all()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_TIMEOUT_S)

    def wait_ready(self, timeout_s: float) -> bool:
        return self._wait(lambda: self.ready, timeout_s)

    def wait_applied(self, offset: int, timeout_s: float) -> bool:
        """Whether the command at this offset has been applied."""
        return self._wait(lambda: self.position > offset, timeout_s)

    def check_ready(self) -> None:
        if self.failure is not None:
            raise EngineError(f"This server has stopped following its command topic. {self.failure}")
        if not self.ready:
            raise NotReadyError("The server is still replaying its command topic.", hint="Try again in a moment.")

    def read_up_to(self, end: int) -> list[tuple[int, Command]]:
        """All commands before an offset, read anew."""
        found: list[tuple[int, Command]] = []
        with Consumer(self._consumer_config("commands-check")) as consumer:
            consumer.assign([self.partition])
            consumer.seek_to_beginning([self.partition])
            while consumer.position(self.partition) < end:
                found += [(record.offset, decode(record.value)) for record in consumer.poll(_POLL_MS) if record.value]
        return found

    def _wait(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        with self._moved:
            self._moved.wait_for(lambda: reached() or self._closed or self.failure is not None, timeout_s)
        return reached()

    # -- In the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed and self.failure is None:
            try:
                self._create_topic()
                with Consumer(self._consumer_config("commands-replay")) as consumer:
                    self._follow(consumer)
            except KafkaError as error:
                log.warning("The command topic cannot be read, trying again: %s", error)
                with self._moved:
                    self._moved.wait_for(lambda: self._closed, _RETRY_S)
            except EngineError as error:
                log.error("The command topic is not followed any more: %s", error)
                self._fail(str(error))

    def _create_topic(self) -> None:
        configs = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        with Admin(self._kafka.admin_config("commands-create")) as admin:
            try:
                admin.create_topics([NewTopic(name=self.partition.topic, num_partitions=1, configs=configs)])
            except TopicAlreadyExists:
                pass

    def _consumer_config(self, role: str) -> dict[str, object]:
        extra = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        return self._kafka.config(role, extra)

    def _follow(self, consumer: Consumer) -> None:
        consumer.assign([self.partition])
        consumer.seek(self.partition, self.position)
        first_end = consumer.end_offsets([self.partition])[self.partition]
        while not self._closed:
            if not self.ready and self.position >= first_end:
                self._become_ready()
            for record in consumer.poll(_POLL_MS):
                if record.value is not None:
                    self._apply(decode(record.value))
                self._move(record.offset + 1)
            # The position also passes the marks of transactions, which are no records.
            self._move(consumer.position(self.partition))

    def _apply(self, command: Command) -> None:
        before, self.catalog = self.catalog, apply(self.catalog, command)
        self.applied[command.name] = command
        if self.ready:
            self._tell(before, self.catalog)

    def _become_ready(self) -> None:
        self._tell(self._initial, self.catalog)
        with self._moved:
            self.ready = True
            self._moved.notify_all()

    def _tell(self, before: Catalog, after: Catalog) -> None:
        try:
            self._on_change(before, after)
        except Exception:  # the catalog stands whatever happens to a query; its state tells the error
            log.exception("A command was applied, but a query could not follow it")

    def _move(self, position: int) -> None:
        with self._moved:
            self.position = position
            self._moved.notify_all()

    def _fail(self, reason: str) -> None:
        with self._moved:
            self.failure = reason
            self._moved.notify_all()
