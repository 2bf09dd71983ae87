"""Runs the persistent queries of a server: one Spark streaming query each, supervised.

    STARTING  producer fenced in, marker read, checkpoint opened, Spark started; always in this order
    RUNNING   Spark runs batches
    ERROR     Spark stopped with an error; starts again after a pause that doubles, or never if another server took over
    PAUSED    stopped; the checkpoint stays
    (gone)    stopped and forgotten

One thread starts queries and looks after them: it owns the table of queries, the others only ask it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped, unused-ignore]
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.sql.engine.ports import QueryStatus
from penstock.sql.engine.rows import RowQueue
from penstock.sql.errors import NotSupportedError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.spark.building import Builder
from penstock.sql.spark.running.persistent import PersistentQuery
from penstock.sql.spark.running.reasons import reason_of
from penstock.sql.spark.running.transient import TransientQuery
from penstock.sql.stores.stores import Stores

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    data_dir: Path
    checkpoint_uri: str
    """The folder of all checkpoints; any URI Spark can write."""
    shuffle_partitions: int = 2
    lookup_url: str | None = None
    """Where executors ask for rows of tables when they cannot read this machine's disk."""
    restart_backoff_s: float = 1.0
    restart_backoff_max_s: float = 60.0


class SparkRunner:
    """The engine's QueryRunner."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaAccess,
        stores: Stores,
        functions: FunctionRegistry,
        settings: RunnerSettings,
        tell: Callable[[list[bytes]], None],
    ) -> None:
        self.builder = Builder(spark, kafka, stores, functions, settings.shuffle_partitions, settings.lookup_url)
        self._kafka = kafka
        self._stores = stores
        self._settings = settings
        self._tell = tell
        self._queries: dict[str, PersistentQuery] = {}
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._supervise, name="penstock-sql-queries", daemon=True)
        self._thread.start()

    def check(self, plan: QueryPlan) -> None:
        try:
            self.builder.check(plan)
        except AnalysisException as error:
            raise NotSupportedError(f"Spark cannot run this query: {reason_of(error)}") from None

    def start(self, plan: QueryPlan, *, paused: bool = False) -> None:
        self._work.put(lambda: self._start(plan, paused))

    def stop(self, query_id: str, *, forget: bool) -> None:
        self._and_wait(lambda: self._stop(query_id, forget))

    def pause(self, query_id: str) -> None:
        self._and_wait(lambda: self._queries[query_id].pause() if query_id in self._queries else None)

    def resume(self, query_id: str) -> None:
        self._work.put(lambda: self._queries[query_id].resume() if query_id in self._queries else None)

    def status(self, query_id: str) -> QueryStatus | None:
        query = self._queries.get(query_id)
        return None if query is None else query.status()

    def forget_source(self, name: str) -> None:
        self._stores.close_table(name)

    def physical_plan(self, plan: QueryPlan) -> str:
        """As the query's last batch ran, or how Spark understands a plan that does not run."""
        query = self._queries.get(plan.query_id)
        running = None if query is None else query.physical_plan()
        return running or self.builder.explain(plan)

    def run_transient(self, plan: QueryPlan, queue: RowQueue) -> Callable[[], None]:
        """Run a push query; what is returned stops it."""
        transient = TransientQuery(plan, self.builder, queue, self._settings.data_dir / "transient")
        transient.start()
        return transient.stop

    def close(self) -> None:
        """Stop all queries where they are; they go on when a server starts again."""
        self._work.put(None)
        self._thread.join(_STOP_TIMEOUT_S)

    def _start(self, plan: QueryPlan, paused: bool) -> None:
        old = self._queries.pop(plan.query_id, None)
        if old is not None:
            old.stop()
        query = PersistentQuery(plan, self.builder, self._kafka, self._stores, self._settings, self._tell)
        self._queries[plan.query_id] = query
        if paused:
            query.pause()
        else:
            query.start()

    def _stop(self, query_id: str, forget: bool) -> None:
        query = self._queries.pop(query_id, None)
        if query is None:
            return
        query.stop()
        if forget:
            query.forget()

    def _and_wait(self, work: Callable[[], object]) -> None:
        """Do it in the supervisor's thread and wait, so that a caller who goes on finds it done."""
        done = threading.Event()
        failures: list[Exception] = []

        def run() -> None:
            try:
                work()
            except Exception as error:
                failures.append(error)
                raise
            finally:
                done.set()

        self._work.put(run)
        done.wait(_STOP_TIMEOUT_S)
        if failures:
            raise failures[0]

    def _supervise(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=_LOOK_S)
            except queue.Empty:
                self._look_after()
                continue
            if work is None:
                break
            self._safely(work)
        for query in self._queries.values():
            self._safely(query.stop)

    def _look_after(self) -> None:
        for query in list(self._queries.values()):
            self._safely(query.look_after)

    def _safely(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (Py4JNetworkError, ConnectionError) as error:
            # Java has ended. The server sees that too, and builds everything anew.
            log.warning("A query could not be looked after, Spark does not answer: %s", reason_of(error))
        except Exception:  # one query's trouble must not end the thread that looks after all of them
            log.exception("A query could not be looked after")
