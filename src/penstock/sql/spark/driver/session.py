"""The Spark session of a server: what it is set to, its start and its end.

One session per process. Spark's log goes to files below the data folder (`logs/`), warnings and worse. Settings of the
user's (`spark.*`) come last and win.

On a cluster the executors get their Python packages from us (`packing`), unless the user names a Python of theirs
(`spark.pyspark.python`), which then must have everything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from py4j.protocol import Py4JError  # type: ignore[import-untyped, unused-ignore]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.sql.errors import EngineError
from penstock.sql.spark.driver.java import Gateway, find_java, start_gateway
from penstock.sql.spark.driver.packing import (
    ENVIRONMENT,
    ENVIRONMENT_PYTHON,
    link_driver_environment,
    pack_environment,
    package_folder,
)
from penstock.sql.spark.source.frame import SOURCE_SETTING

PYTHON_SETTING: Final = "spark.pyspark.python"
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_BY_RENAMING: Final = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"

_SETTINGS: Final[dict[str, str]] = {
    # The rules of the language: no row stops a query, all times are UTC.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # State that is larger than memory, written as changes.
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting the keys costs a look-up for each that is written.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Many small queries side by side.
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
}

_LOCAL_SETTINGS: Final[dict[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_LOCAL_CHECKPOINTS: Final[dict[str, str]] = {
    # On local disks renaming is enough, and costs no processes.
    "spark.sql.streaming.checkpointFileManagerClass": _BY_RENAMING,
}

_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
# Said at every start or query, and of no use to anybody.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.resolving.name = org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream
logger.resolving.level = error
logger.states.name = org.apache.spark.sql.execution.streaming.state
logger.states.level = error
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = error
logger.settings.name = org.apache.spark.SparkConf
logger.settings.level = error
logger.scheduler.name = org.apache.spark.scheduler.DAGScheduler
logger.scheduler.level = error
logger.pools.name = org.apache.spark.scheduler.FairSchedulableBuilder
logger.pools.level = error
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """`data_dir` is for what the driver keeps on its own disk. `source`: which implementation reads topics.

    `executor_python` is the plain Python of a cluster's executors, of the same minor version as this one.
    """

    data_dir: Path
    master: str = "local[*]"
    app_name: str = "penstock-sql"
    memory: str = "1g"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    java_home: Path | None = None
    source: Literal["penstock", "kafka"] = "penstock"
    shuffle_partitions: int = 2
    executor_python: str = "python3"

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_packed(self) -> bool:
        """Whether executors get their packages from us."""
        return not self.is_local and PYTHON_SETTING not in self.spark_conf


def session_conf(settings: SessionSettings) -> dict[str, str]:
    """Every setting the session starts with."""
    folder = settings.data_dir / "spark"
    conf = {
        **_SETTINGS,
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.memory,
        "spark.local.dir": str(folder / "temporary"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        SOURCE_SETTING: settings.source,
    }
    if settings.is_local:
        conf |= _LOCAL_SETTINGS | _LOCAL_CHECKPOINTS | {PYTHON_SETTING: sys.executable}
    conf |= settings.spark_conf
    if settings.is_packed:
        archive = pack_environment(folder / "packed", settings.executor_python)
        given = settings.spark_conf.get("spark.archives")
        conf["spark.archives"] = ",".join(filter(None, (given, f"{archive}#{ENVIRONMENT}")))
        conf[PYTHON_SETTING] = ENVIRONMENT_PYTHON
    return conf


_running: dict[int, Gateway] = {}
"""The machine of the session of this process."""


def start_session(settings: SessionSettings) -> SparkSession:
    """Start Java and a session on it. A session that runs already must be stopped first."""
    logs = settings.data_dir / "logs"
    for folder in (logs, settings.data_dir / "spark" / "temporary"):
        folder.mkdir(parents=True, exist_ok=True)
    log4j = settings.data_dir / "spark" / "log4j2.properties"
    log4j.write_text(_LOG4J.format(path=logs / "spark.log"))
    conf = session_conf(settings)
    working = settings.data_dir / "spark" / "driver" if settings.is_packed else None
    if working is not None:
        link_driver_environment(working)
    gateway = start_gateway(
        find_java(settings.java_home),
        memory=conf["spark.driver.memory"],
        spark_conf=conf,
        options=[f"-Dlog4j2.configurationFile={log4j}", f"-Dderby.system.home={settings.data_dir / 'spark'}"],
        environment=_python_environment(conf),
        folder=working,
        output=logs / "java.log",
    )
    try:
        session = _connect(gateway, conf)
    except BaseException as error:
        _disconnect(gateway)
        if isinstance(error, Py4JError | PySparkException):
            raise EngineError(
                f"Spark did not start on the master {conf['spark.master']}.", hint=f"See {logs / 'spark.log'}."
            ) from error
        raise
    _running[os.getpid()] = gateway
    return session


def stop_session(session: SparkSession) -> None:
    """Stop the session and its Java, also when that is dead already."""
    gateway = _running.pop(os.getpid(), None)
    if gateway is None:
        session.stop()
        return
    if gateway.is_alive:
        with suppress(Py4JError, ConnectionError):  # it may die just now
            session.stop()
    _disconnect(gateway)


def java_is_alive() -> bool:
    """Whether the Java under the session of this process runs."""
    gateway = _running.get(os.getpid())
    return gateway is not None and gateway.is_alive


def _python_environment(conf: Mapping[str, str]) -> dict[str, str]:
    """Worker processes of the driver find the packages that this process has, wherever they were started."""
    paths = [str(package_folder()), *map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(":")))]
    return {"PYTHONPATH": ":".join(dict.fromkeys(paths)), "PYSPARK_PYTHON": conf[PYTHON_SETTING]}


def _connect(gateway: Gateway, conf: Mapping[str, str]) -> SparkSession:
    builder: Any = SparkSession.builder
    variables = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    with _environment(**variables, PYSPARK_PYTHON=conf[PYTHON_SETTING]):
        for name, value in conf.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
    return session


def _disconnect(gateway: Gateway) -> None:
    """Forget what pyspark keeps for the whole process, so that another session can follow.

    Java ends first: py4j closes the connection of a thread that reads from it only once that thread has read the end.
    """
    gateway.stop()
    found: Any = SparkContext
    if found._gateway is not None:
        found._gateway.shutdown()
    found._gateway = found._jvm = found._active_spark_context = None
    sessions: Any = SparkSession
    sessions._instantiatedSession = sessions._activeSession = None


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
