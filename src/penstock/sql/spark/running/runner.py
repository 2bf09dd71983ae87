"""Runs the persistent queries of a server: one Spark streaming query each, supervised.

The table of queries changes at once with what is asked; what has to be done for it is put on the query's lane and done
there later, one work after the other (`lanes`):

    start     old query of this id, if any: break off its start, put its end. New query: STARTING; put its start
    resume    STARTING; put a start
    pause     drop a start that waits, break off one that runs, put an end; PAUSED when that is done
    stop      the same, and out of the table at once; with `forget` the end also deletes the checkpoint
    (gate)    what deletes a checkpoint waits until there is a Spark to do it
    forget    of a source: an end on a lane of its own, behind all ends that were asked for before, because those
              queries may still write the source's table; starts that are asked for later wait for it
    close     drop all starts, end all queries, wait for that

So a query id never runs twice, a query's end waits for no other query's start, and nobody who asks waits here: whoever
must know that queries have ended asks `wait_ended`. One thread looks after all queries, and puts on their lanes what
it finds necessary: a start after a failure, the end of one that Spark ended.

When Java ends, `spark_ended` ends what is left of all queries and keeps the table; `use` starts them on the new Spark.
In between everything that asks Spark is refused with NotReadyError. The states of a query are told in `persistent`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.sql.engine.ports import QueryStatus
from penstock.sql.engine.rows import RowQueue
from penstock.sql.errors import NotReadyError, NotSupportedError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.spark.building import Builder
from penstock.sql.spark.running.java_end import is_java_gone, quieten_accumulators
from penstock.sql.spark.running.lanes import Lanes
from penstock.sql.spark.running.persistent import PersistentQuery
from penstock.sql.spark.running.reasons import reason_of
from penstock.sql.spark.running.starting import STARTS_AT_ONCE
from penstock.sql.spark.running.transient import TransientQuery
from penstock.sql.stores.stores import Stores

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_STOP_TIMEOUT_S = 60.0
_ENDS_AT_ONCE = 4
_SOURCE = "source "
"""How the lanes of sources begin."""


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
        self._kafka = kafka
        self._stores = stores
        self._functions = functions
        self._settings = settings
        self._tell = tell
        self._queries: dict[str, PersistentQuery] = {}
        self._paused: set[str] = set()
        """What was asked, also while it is not done yet."""
        self._builder: Builder | None = self._new_builder(spark)
        self._lock = threading.Lock()
        """Of the three above; held only to put works, never while they are done."""
        self._lanes = Lanes({"start": STARTS_AT_ONCE, "end": _ENDS_AT_ONCE}, self._told, "penstock-sql-queries")
        self._spark_there = self._lanes.gate()
        self._lanes.open(self._spark_there)
        self._closing = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="penstock-sql-queries", daemon=True)
        self._supervisor.start()

    # -- What is asked ---------------------------------------------------------------------------------------------

    @property
    def builder(self) -> Builder:
        builder = self._builder
        if builder is None:
            raise NotReadyError("Spark is starting again after its Java has ended.", hint="Ask again in some seconds.")
        return builder

    def check(self, plan: QueryPlan) -> None:
        try:
            self.builder.check(plan)
        except AnalysisException as error:
            raise NotSupportedError(f"Spark cannot run this query: {reason_of(error)}") from None

    def start(self, plan: QueryPlan, *, paused: bool = False) -> None:
        query_id = plan.query_id
        query = self._new_query(plan, paused=paused)
        with self._lock:
            old = self._queries.get(query_id)
            self._queries[query_id] = query
            if old is not None:
                self._put_end(query_id, old, old.stop)
            if paused:
                self._paused.add(query_id)
            else:
                self._paused.discard(query_id)
                self._put_start(query_id, query)

    def stop(self, query_id: str, *, forget: bool) -> None:
        with self._lock:
            query = self._queries.pop(query_id, None)
            self._paused.discard(query_id)
            if query is None:
                return
            self._put_end(query_id, query, query.stop)
            if forget:
                self._lanes.put("end", query_id, query.forget, after=[self._spark_there])

    def pause(self, query_id: str) -> None:
        with self._lock:
            query = self._queries.get(query_id)
            if query is not None:
                self._paused.add(query_id)
                self._put_end(query_id, query, query.pause)

    def resume(self, query_id: str) -> None:
        with self._lock:
            query = self._queries.get(query_id)
            if query is not None:
                self._paused.discard(query_id)
                self._put_start(query_id, query)

    def forget_source(self, name: str) -> None:
        with self._lock:
            ends = self._lanes.pending("end")
            self._lanes.put("end", _source_lane(name), lambda: self._stores.close_table(name), after=ends)

    def wait_ended(self, query_ids: Collection[str], source_names: Collection[str], timeout_s: float) -> bool:
        return self._lanes.wait_ended([*query_ids, *map(_source_lane, source_names)], timeout_s)

    def status(self, query_id: str) -> QueryStatus | None:
        query = self._queries.get(query_id)
        return None if query is None else query.status()

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
        self._closing.set()
        self._supervisor.join(_STOP_TIMEOUT_S)
        with self._lock:
            self._lanes.open(self._spark_there)
            for query_id, query in self._queries.items():
                self._put_end(query_id, query, query.stop)
        if not self._lanes.close(_STOP_TIMEOUT_S):
            log.warning("Not all queries have stopped within %.0f s", _STOP_TIMEOUT_S)

    # -- The end of Java -------------------------------------------------------------------------------------------

    def spark_ended(self) -> None:
        """Give up what runs on it. May be called again."""
        with self._lock:
            if self._builder is not None:
                self._builder = None
                self._spark_there = self._lanes.gate()
            for query_id, query in self._queries.items():
                self._put_end(query_id, query, query.lost)

    def use(self, spark: SparkSession) -> None:
        """Go on with all queries on a new Spark."""
        with self._lock:
            self._builder = self._new_builder(spark)
            self._lanes.open(self._spark_there)
            for query_id, query in self._queries.items():
                if query_id not in self._paused:
                    self._put_start(query_id, query)

    def _new_builder(self, spark: SparkSession) -> Builder:
        quieten_accumulators(spark)
        shuffle_partitions, lookup_url = self._settings.shuffle_partitions, self._settings.lookup_url
        return Builder(spark, self._kafka, self._stores, self._functions, shuffle_partitions, lookup_url)

    # -- What is put on the lanes ----------------------------------------------------------------------------------

    def _new_query(self, plan: QueryPlan, *, paused: bool) -> PersistentQuery:
        def builder() -> Builder:
            return self.builder

        return PersistentQuery(plan, builder, self._kafka, self._stores, self._settings, self._tell, paused=paused)

    def _put_start(self, query_id: str, query: PersistentQuery) -> None:
        query.expect_start()
        if self._builder is not None:
            forgetting = self._lanes.pending("end", _SOURCE)
            self._lanes.put("start", query_id, query.start, after=forgetting)

    def _put_end(self, query_id: str, query: PersistentQuery, end: Callable[[], None]) -> None:
        self._lanes.drop_starts(query_id)
        query.break_off()
        self._lanes.put("end", query_id, end)

    # -- In threads of its own -------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while not self._closing.wait(_LOOK_S):
            if self._builder is not None:
                for query_id, query in list(self._queries.items()):
                    self._look_after(query_id, query)

    def _look_after(self, query_id: str, query: PersistentQuery) -> None:
        """A query for which something is waiting is left alone until that is done."""
        if not self._lanes.is_idle(query_id):
            return
        try:
            needed = query.needed()
        except Exception as error:  # noqa: BLE001 - one query's trouble must not end the thread that looks after all
            self._told(error)
            return
        if needed is None:
            return
        with self._lock:
            if self._queries.get(query_id) is query and self._builder is not None:
                self._lanes.put("start" if needed == "start" else "end", query_id, query.follow_up)

    def _told(self, error: Exception) -> None:
        if is_java_gone(error):
            # The server sees that too, tells it once, and starts Spark anew.
            log.debug("A query could not be looked after, Java has ended: %s", reason_of(error))
        else:
            log.error("A query could not be looked after", exc_info=error)


def _source_lane(name: str) -> str:
    """No query id looks like this."""
    return f"{_SOURCE}{name}"
