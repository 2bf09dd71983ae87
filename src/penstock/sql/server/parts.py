"""The composition root: everything a SQL server consists of, built in order and taken down in the opposite one."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock import aio
from penstock.sql.errors import NotFoundError
from penstock.sql.kafka import KafkaAccess
from penstock.sql.server import config as keys
from penstock.sql.server.config import ServerConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.sql.engine.engine import Engine
    from penstock.sql.engine.queries import QueryService
    from penstock.sql.spark.driver.session import SessionSettings
    from penstock.sql.spark.running.runner import SparkRunner
    from penstock.sql.stores.stores import Stores

log = logging.getLogger(__name__)

REPLAY_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    kafka: KafkaAccess
    engine: Engine
    queries: QueryService
    stores: Stores
    _runner: SparkRunner
    _spark: OwnSpark
    _stack: ExitStack

    @property
    def is_alive(self) -> bool:
        """Whether the Java machine under Spark runs."""
        from penstock.sql.spark.driver.session import java_is_alive

        return java_is_alive()

    def restart_spark(self) -> None:
        """Start Spark anew after its Java has ended, and on it all queries. Everything else goes on meanwhile.

        Raises a SqlError or OSError when Spark does not start; then it may be tried again.
        """
        self._runner.spark_ended()
        self._runner.use(self._spark.restart())

    def find_rows(self, table: str, question: bytes) -> bytes:
        """For executors that cannot read the server's disk: the rows of a table for some keys, both in Arrow's form."""
        from penstock.sql.spark.lookup import answer

        source = self.engine.catalog.sources.get(table)
        if source is None or source.kind != "TABLE":
            raise NotFoundError(f"There is no table {table}.")
        return answer(question, self.stores.open(source.node()).store)

    def close(self) -> None:
        """Ends what people watch, then the engine, its queries, the tables, and Spark. Nothing is lost by it."""
        self._stack.close()


class OwnSpark:
    """The session of a server that was not given one."""

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._session: SparkSession | None = None

    def restart(self) -> SparkSession:
        from penstock.sql.spark.driver.session import start_session

        self.stop()
        log.info("starting Spark on %s", self._settings.master)
        self._session = start_session(self._settings)
        return self._session

    def stop(self) -> None:
        from penstock.sql.spark.driver.session import stop_session

        session, self._session = self._session, None
        if session is not None:
            stop_session(session)


def kafka_access(config: ServerConfig) -> KafkaAccess:
    return KafkaAccess(
        bootstrap_servers=config[keys.BOOTSTRAP_SERVERS],
        service_id=config[keys.SERVICE_ID],
        properties=dict(config.client),
    )


async def reach_cluster(config: ServerConfig) -> None:
    """Return when it answers. Raises a KafkaError when it does not in time."""
    kafka = kafka_access(config)
    log.info("reaching the Kafka cluster at %s", kafka.bootstrap_servers)
    async with aio.Admin(kafka.admin_config("reach")) as admin:
        await admin.describe_cluster()


def session_settings(config: ServerConfig) -> SessionSettings:
    from penstock.sql.spark.driver.session import SessionSettings

    java_home = config[keys.JAVA_HOME]
    return SessionSettings(
        data_dir=config.data_dir,
        master=config[keys.MASTER],
        app_name=f"penstock-sql {config[keys.SERVICE_ID]}",
        memory=config[keys.MEMORY],
        spark_conf=dict(config.spark),
        java_home=None if java_home is None else Path(java_home),
        source="kafka" if config[keys.SOURCE] == "kafka" else "penstock",
        shuffle_partitions=config[keys.SHUFFLE_PARTITIONS],
        executor_python=config[keys.EXECUTOR_PYTHON],
    )


def build_parts(config: ServerConfig, spark: SparkSession | None = None) -> Parts:
    """With the given Spark session, or with one of its own. Blocks until the engine has replayed its statements.

    Raises a SqlError or KafkaError that says what is missing.
    """
    # Spark and its friends take a second to import: a wrong setting or a closed port is told before.
    from penstock.sql.engine.engine import Engine, EngineSettings
    from penstock.sql.engine.processing_log import ProcessingLog
    from penstock.sql.engine.queries import QueryService
    from penstock.sql.functions.registry import FunctionRegistry
    from penstock.sql.internal_topics import create_internal_topics
    from penstock.sql.spark.running.runner import RunnerSettings, SparkRunner
    from penstock.sql.stores.stores import Stores

    kafka = kafka_access(config)
    data_dir = config.data_dir
    functions = FunctionRegistry.builtin()
    if (folder := config[keys.EXTENSION_DIR]) is not None:
        functions = functions.with_user_functions(Path(folder))
    # Before Spark, which takes seconds: a cluster that refuses them is told at once.
    create_internal_topics(kafka)
    with ExitStack() as stack:
        own_spark = OwnSpark(session_settings(config))
        stack.callback(own_spark.stop)
        session = spark or own_spark.restart()
        processing_log = ProcessingLog(kafka)
        stack.callback(processing_log.close)
        stores = Stores(data_dir / "tables", kafka, processing_log.tell_bad_records)
        stack.callback(stores.close)
        settings = RunnerSettings(
            data_dir=data_dir,
            checkpoint_uri=config.checkpoint_uri,
            shuffle_partitions=config[keys.SHUFFLE_PARTITIONS],
            lookup_url=None if str(session.sparkContext.master).startswith("local") else config.advertised_url,
        )
        runner = SparkRunner(session, kafka, stores, functions, settings, processing_log.tell)
        stack.callback(runner.close)
        engine_settings = EngineSettings(version=penstock.__version__, properties=config.shown)
        engine = Engine(kafka=kafka, functions=functions, runner=runner, settings=engine_settings)
        stack.callback(engine.close)
        queries = QueryService(lambda: engine.catalog, functions, kafka, stores, runner, config[keys.PUSH_QUERIES_MAX])
        stack.callback(queries.close)
        engine.close_transient = queries.close_one
        engine.push_plans = queries.push_plans
        engine.start()
        engine.wait_ready(REPLAY_TIMEOUT_S)
        return Parts(
            kafka=kafka,
            engine=engine,
            queries=queries,
            stores=stores,
            _runner=runner,
            _spark=own_spark,
            _stack=stack.pop_all(),
        )
    raise AssertionError("unreachable: an ExitStack without a suppressing callback")
