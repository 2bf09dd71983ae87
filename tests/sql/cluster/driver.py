"""A SQL server on a cluster, in a process of its own (a process has one Spark): runs scenarios and says which passed.

driver.py MASTER DATA_DIR CHECKPOINT_FOLDER EXECUTOR_PYTHON SCENARIO...
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from penstock.sql.server.config import load_config
from penstock.sql.server.parts import build_parts
from penstock.sql.server.service import EngineService
from penstock.sql.spark.driver.session import SessionSettings, start_session, stop_session
from penstock.testing import EphemeralBroker
from tests.sql.scenario import ScenarioRunner
from tests.unit.sql.server.fakes import serving

SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # Driver and executors are different users here, and share the folder of the checkpoints.
    "spark.hadoop.fs.permissions.umask-mode": "000",
}


def main(master: str, data_dir: str, checkpoints: str, executor_python: str, *scenarios: str) -> None:
    settings = SessionSettings(
        data_dir=Path(data_dir), master=master, memory="512m", spark_conf=SPARK, executor_python=executor_python
    )
    spark = start_session(settings)
    try:
        print("executors", _where(spark), flush=True)
        for name in scenarios:
            with ExitStack() as stack:
                broker = stack.enter_context(
                    EphemeralBroker({"log.retention.ms": "-1", "auto.create.topics.enable": "false"})
                )
                flags = {
                    "bootstrap.servers": broker.bootstrap_servers,
                    "ksql.service.id": f"{name}_",
                    "penstock.sql.data.dir": f"{data_dir}/{name}",
                    "penstock.sql.checkpoint.uri": Path(checkpoints, name).as_uri(),
                }
                service = EngineService(flags["ksql.service.id"], {})
                flags["ksql.advertised.listener"] = stack.enter_context(serving(service))
                parts = build_parts(load_config(None, flags), spark)
                stack.callback(parts.close)
                service.use(parts)
                ScenarioRunner(parts)(Path(__file__).parents[1] / "scenarios" / f"{name}.test")
            print("passed", name, flush=True)
    finally:
        stop_session(spark)


def _where(spark: object) -> str:
    """What executors are: their Python, user and where they find Penstock."""

    def look(_: object) -> object:
        import os
        import sys

        import penstock

        return sys.executable, os.getuid(), penstock.__file__

    context = spark.sparkContext  # type: ignore[attr-defined]
    return repr(sorted(set(context.parallelize(range(4), 4).map(look).collect())))


if __name__ == "__main__":
    main(*sys.argv[1:])
