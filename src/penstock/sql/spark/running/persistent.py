"""One persistent query: what it needs to start, and what becomes of it.

`start`, `pause`, `stop`, `lost` and `follow_up` change it: the runner calls one of them at a time. Everything else may
be asked from any thread at any moment. The states, and what leads from one to the next:

    STARTING  from its beginning or RESUME on, while it waits for its turn, until Spark has its sources. Then RUNNING,
              or ERROR; PAUSED when it is paused meanwhile. Also while Java is started anew.
    RUNNING   Spark asks its sources and runs batches. ERROR when Spark ends it.
    ERROR     tries again after a pause. RUNNING when a batch was done, or no failure came for some seconds: a query
              that fails again and again never runs in between. For good when another server has taken it over.
    PAUSED    stopped where it was. STARTING on RESUME.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import penstock
from penstock.sql.engine.ports import QueryState, QueryStatus
from penstock.sql.engine.properties import FAIL_ON_DATA_LOSS
from penstock.sql.errors import EngineError
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import PLAN_VERSION, QueryPlan, Sink
from penstock.sql.plan.results import retention_of, source_of
from penstock.sql.spark.building import Builder
from penstock.sql.spark.running.checkpoints import Checkpoint, checkpoint_uri
from penstock.sql.spark.running.java_end import is_java_gone
from penstock.sql.spark.running.markers import Home, Marker, forget_marker, read_marker, send_marker
from penstock.sql.spark.running.reasons import reason_of
from penstock.sql.spark.running.sink import Refused, TopicSink
from penstock.sql.spark.running.starting import (
    StartBrokenOffError,
    is_initializing,
    start_few_at_once,
    stream_writer,
)
from penstock.sql.spark.source.errors import LOSS_REMEDY
from penstock.sql.stores.stores import OpenTable, Stores

if TYPE_CHECKING:
    from penstock.sql.spark.running.runner import RunnerSettings

log = logging.getLogger(__name__)

_COMMIT_TIMEOUT_S = 30.0
_DOOR_TIMEOUT_S = 30.0
_RECORD_OVERHEAD_BYTES = 100
_SETTLED_S = 3.0
"""A query without records that has not failed for so long has asked its sources, and runs."""
_STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


FollowUp = Literal["settle", "fail", "start"]
"""What time has made necessary: it runs; Spark has ended it; it is time to try again."""


class TakenOverError(EngineError):
    """The query runs elsewhere."""


class PersistentQuery:
    def __init__(
        self,
        plan: QueryPlan,
        builder: Callable[[], Builder],
        kafka: KafkaAccess,
        stores: Stores,
        settings: RunnerSettings,
        tell: Callable[[list[bytes]], None],
        *,
        paused: bool = False,
    ) -> None:
        self._plan = plan
        self._builder = builder
        self._kafka = kafka
        self._stores = stores
        self._settings = settings
        self._tell = tell
        self._state: QueryState = "PAUSED" if paused else "STARTING"
        self._last_error: str | None = None
        self._last_error_time_ms: int | None = None
        self._owner = uuid.uuid4().hex
        self._has_run = False
        self._restarts = 0
        self._failures_in_a_row = 0
        self._next_start_s: float | None = None
        self._producer: penstock.Producer | None = None
        self._sink: TopicSink | None = None
        self._streaming: Any = None
        self._has_settled = False
        self._started_s = 0.0
        self._break_off = threading.Event()

    def expect_start(self) -> None:
        """It will be started when it is its turn. What failed shows its error until it runs."""
        if self._state != "ERROR":
            self._state = "STARTING"

    def break_off(self) -> None:
        """A start that is under way ends at the next step; whoever asks for this stops the query afterwards."""
        self._break_off.set()

    def start(self) -> None:
        """Start, or remember why not and when to try again."""
        self._next_start_s = None
        if self._streaming is not None or self._break_off.is_set():
            return
        try:
            self._start()
        except StartBrokenOffError:
            self._release()
        except Exception as error:
            if is_java_gone(error):
                self._release()
                raise
            self._failed(error)

    def _start(self) -> None:
        plan, kafka = self._plan, self._kafka
        sink = _sink_of(plan)
        built = self._builder().build(plan)
        self._check_wanted()
        # What cannot go on here is not taken away from a server where it can: look before fencing, and again after it.
        if (marker := read_marker(kafka, plan.query_id)) is not None:
            self._check_not_taken_over(marker)
            self._check_fits(marker.home, built.session)
        self._producer = producer = penstock.Producer(
            kafka.config(
                f"query-{plan.query_id}",
                {"transactional.id": f"{kafka.service_id}-{plan.query_id}", "linger.ms": 0},
            )
        )
        producer.init_transactions()
        self._check_wanted()
        marker = read_marker(kafka, plan.query_id) or self._first_marker(built.session)
        self._check_fits(marker.home, built.session)
        marker = replace(marker, owner=self._owner)
        self._take_over(producer, marker)
        built.session.conf.set("spark.sql.shuffle.partitions", marker.home.shuffle_partitions)
        checkpoint = self._checkpoint(built.session, marker.home)
        self._sink = TopicSink(
            query_id=plan.query_id,
            service_id=kafka.service_id,
            sink=sink,
            producer=producer,
            marker=marker,
            checkpoint=checkpoint,
            table=self._open_result(sink),
            looked_up=built.looked_up,
            refused=Refused(max_bytes=self._largest_record(sink.topic), tell=self._tell),
        )
        writer = stream_writer(built, plan.query_id).option("checkpointLocation", checkpoint.uri)
        self._has_settled = False
        self._streaming = start_few_at_once(writer.foreachBatch(self._sink), self._break_off.is_set)
        self._started_s = time.monotonic()
        if not self._streaming.isActive:
            raise self._why()
        if self._state == "STARTING" and not is_initializing(self._streaming):
            self._state = "RUNNING"

    def _check_wanted(self) -> None:
        if self._break_off.is_set():
            raise StartBrokenOffError

    def _first_marker(self, session: SparkSession) -> Marker:
        """Of a query that never ran: its checkpoint is made first, so that one that is written down is there."""
        home = Home(
            checkpoint_id=uuid.uuid4().hex,
            plan_version=PLAN_VERSION,
            shuffle_partitions=str(self._settings.shuffle_partitions),
            state_provider=_state_provider(session),
        )
        self._checkpoint(session, home).create()
        return Marker(home=home, owner=self._owner)

    def _take_over(self, producer: penstock.Producer, marker: Marker) -> None:
        """Write down whose the query is from now on."""
        producer.begin_transaction()
        send_marker(producer, self._kafka.service_id, self._plan.query_id, marker)
        producer.commit_transaction(_COMMIT_TIMEOUT_S)
        self._has_run = True

    def _check_not_taken_over(self, marker: Marker) -> None:
        """A failure may come from another server that has begun to run the query: then it stays there."""
        if self._has_run and marker.owner != self._owner:
            raise TakenOverError(f"Another server runs the query {self._plan.query_id} now; this one left it.")

    def _checkpoint(self, session: SparkSession, home: Home) -> Checkpoint:
        uri = checkpoint_uri(self._settings.checkpoint_uri, self._plan.query_id, home.checkpoint_id)
        return Checkpoint(session, uri)

    def _check_fits(self, home: Home, session: SparkSession) -> None:
        query_id = self._plan.query_id
        for what, made, now in (
            ("plan version", home.plan_version, self._plan.version),
            ("state store", home.state_provider, _state_provider(session)),
        ):
            if made != now:
                raise EngineError(
                    f"The state of query {query_id} was made with {what} {made}, and this server has {now}. "
                    f"Set it back, or build the query again: {self._rebuild}"
                )
        checkpoint = self._checkpoint(session, home)
        if not checkpoint.exists():
            raise EngineError(
                f"The checkpoint of query {query_id} is not at {checkpoint.uri}: it was removed, or the query belongs "
                f"to another server with the service id {self._kafka.service_id}. Give both the same "
                f"penstock.sql.checkpoint.uri, or build the query again: {self._rebuild}"
            )

    @property
    def _rebuild(self) -> str:
        """The command that forgets the query's state."""
        name = _sink_of(self._plan).name
        if self._plan.text.lstrip()[:6].upper() == "INSERT":
            return f"TERMINATE {self._plan.query_id}; and INSERT INTO {name} again with the same statement."
        return f"DROP {self._plan.kind} {name}; and create it again with the same statement."

    def _open_result(self, sink: Sink) -> OpenTable | None:
        """The store of the result, current before the first batch compares with it."""
        if sink.kind != "TABLE":
            return None
        table = self._stores.open(source_of(sink), retention_of(self._plan))
        table.wait_until_current()
        return table

    def _largest_record(self, topic: str) -> int:
        with penstock.Admin(self._kafka.admin_config("limits")) as admin:
            (config,) = admin.describe_configs([penstock.ConfigResource.topic(topic)]).values()
        return int(config["max.message.bytes"].value or 0) - _RECORD_OVERHEAD_BYTES

    @property
    def _loss_remedy(self) -> str:
        return (
            f"To go on with what there is, SET '{FAIL_ON_DATA_LOSS}'='false'; and CREATE OR REPLACE it with the same "
            f"statement. To begin anew, {self._rebuild}"
        )

    def needed(self) -> FollowUp | None:
        """Asked now and then: what is to be followed up."""
        streaming, next_start_s = self._streaming, self._next_start_s
        if streaming is None:
            return "start" if next_start_s is not None and time.monotonic() >= next_start_s else None
        if not streaming.isActive:
            return "fail"
        return "settle" if not self._has_settled and self._has_run_well(streaming) else None

    def follow_up(self) -> None:
        """Asked again: between the look and this somebody may have stopped it."""
        match self.needed():
            case "start":
                self._restarts += 1
                self.start()
            case "fail":
                self._failed(self._why())
            case "settle":
                self._has_settled = True
                self._state = "RUNNING"
                log.info("%s runs", self._plan.query_id)

    def _has_run_well(self, streaming: Any) -> bool:
        if self._sink is not None and self._sink.batches_done:
            return True
        return time.monotonic() >= self._started_s + _SETTLED_S and not is_initializing(streaming)

    def _why(self) -> Exception:
        if self._sink is not None and self._sink.failure is not None:
            return self._sink.failure
        failure: StreamingQueryException | None = self._streaming.exception()
        return failure or EngineError(f"Spark stopped the query {self._plan.query_id} without a reason.")

    def _failed(self, error: Exception) -> None:
        ran_well = self._sink is not None and self._sink.rows_written > 0
        self._release()
        self._failures_in_a_row = 1 if ran_well else self._failures_in_a_row + 1
        self._state = "ERROR"
        self._last_error = reason_of(error).replace(LOSS_REMEDY, self._loss_remedy)
        self._last_error_time_ms = time.time_ns() // 1_000_000
        if isinstance(error, TakenOverError):
            log.warning("%s", self._last_error)
            return
        pause_s = self._settings.restart_backoff_s * 2 ** min(self._failures_in_a_row - 1, 16)
        pause_s = min(pause_s, self._settings.restart_backoff_max_s)
        self._next_start_s = time.monotonic() + pause_s
        log.warning("%s failed and starts again in %.0f s: %s", self._plan.query_id, pause_s, self._last_error)

    def pause(self) -> None:
        try:
            self.stop()
        finally:
            self._state = "PAUSED"

    def stop(self) -> None:
        """Stop between two batches. The checkpoint stays."""
        self._next_start_s = None
        try:
            if self._sink is not None and self._streaming is not None:
                self._sink.door.close(_DOOR_TIMEOUT_S)
                self._streaming.stop()
        finally:
            self._release()
            self._break_off.clear()

    def lost(self) -> None:
        """Java has ended, and Spark with it: what is left of this run goes. A commit under way is waited for."""
        self._next_start_s = None
        if self._sink is not None:
            self._sink.door.close(_DOOR_TIMEOUT_S)
        self._release()
        self._break_off.clear()
        if self._state != "PAUSED":
            self._state = "STARTING"

    def forget(self) -> None:
        """Its checkpoint goes, wherever it was written; the next query of this name begins anew."""
        marker = read_marker(self._kafka, self._plan.query_id)
        if marker is not None:
            self._checkpoint(self._builder().spark, marker.home).delete()
            forget_marker(self._kafka, self._plan.query_id)

    def _release(self) -> None:
        producer, self._producer, self._streaming = self._producer, None, None
        if producer is not None:
            producer.close(0)

    def physical_plan(self) -> str | None:
        """How Spark ran the last batch, if there was one."""
        text: str = "" if self._streaming is None else self._streaming._jsq.explainInternal(False)
        return text if "== Physical Plan ==" in text else None

    def status(self) -> QueryStatus:
        streaming, sink = self._streaming, self._sink
        progress = streaming.lastProgress if streaming is not None else None
        return QueryStatus(
            state=self._state,
            last_error=self._last_error,
            last_error_time_ms=self._last_error_time_ms,
            restarts=self._restarts,
            input_rate=float((progress or {}).get("inputRowsPerSecond") or 0.0),
            output_rows=sink.rows_written if sink is not None else 0,
            lag=lag_of(progress),
        )


def _state_provider(session: SparkSession) -> str:
    return session.conf.get(_STATE_PROVIDER) or ""


def _sink_of(plan: QueryPlan) -> Sink:
    if plan.sink is None:
        raise EngineError(f"The query {plan.query_id} writes nowhere and cannot run for ever.")
    return plan.sink


def lag_of(progress: Any) -> int | None:
    """Records that were there when the last batch was planned and that it left, over all sources."""
    if progress is None:
        return None
    return sum(
        latest - read[topic].get(partition, 0)
        for source in progress["sources"]
        for read in (_offsets(source["endOffset"]),)
        for topic, partitions in _offsets(source["latestOffset"]).items()
        if topic in read
        for partition, latest in partitions.items()
    )


def _offsets(told: Any) -> dict[str, dict[str, int]]:
    """Spark tells offsets as JSON, or as text that is JSON."""
    offsets = msgspec.json.decode(told) if isinstance(told, str) else told
    return offsets if isinstance(offsets, dict) else {}
