"""Reads the same topics with both implementations of the source, in a process of its own, and compares the rows.

connector_driver.py BOOTSTRAP_SERVERS TOPIC LOG_TOPIC FOLDER JARS
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ColumnSchema, Format, HeaderColumn, Schema
from penstock.sql.spark.driver.session import SessionSettings, start_session, stop_session
from penstock.sql.spark.source.frame import SOURCE_SETTING, SourceOptions, source_frame
from penstock.sql.types import BIGINT, STRING


def main(address: str, topic: str, log: str, folder: str, jars: str) -> None:
    settings = SessionSettings(
        data_dir=Path(folder), master="local[2]", memory="1g", source="kafka", spark_conf={"spark.jars": jars}
    )
    spark = start_session(settings)
    try:
        chosen = {"kafka.bootstrap.servers": address, "subscribe": topic, "includeHeaders": "true"}
        chosen["kafka.isolation.level"] = "read_committed"
        raw = {name: _sorted(spark.read.format(name).options(**chosen).load()) for name in ("kafka", "penstock")}
        assert raw["kafka"] == raw["penstock"], raw
        print("records", len(raw["kafka"]))
        typed = {name: _typed(spark, name, address, topic, log, Path(folder)) for name in ("kafka", "penstock")}
        assert typed["kafka"] == typed["penstock"], typed
        print("rows", len(typed["kafka"]))
    finally:
        stop_session(spark)


def _sorted(frame: Any) -> list[str]:
    """Records without headers have an empty list of them here, and null there."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(str({**row, "headers": row["headers"] or None}) for row in rows)


def _typed(spark: Any, name: str, address: str, topic: str, log: str, folder: Path) -> list[str]:
    source = SourceNode(
        name="S",
        kind="TABLE",
        topic=topic,
        schema=Schema(
            key=(ColumnSchema("K", STRING),),
            value=(ColumnSchema("ID", BIGINT), ColumnSchema("NAME", STRING)),
            headers=(HeaderColumn("H", "h"),),
        ),
        key_format=Format("KAFKA"),
        value_format=Format("JSON"),
    )
    spark.conf.set(SOURCE_SETTING, name)
    frame = source_frame(
        spark, source, SourceOptions(bootstrap_servers=address, starting="earliest", processing_log=log)
    )
    rows: list[str] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: rows.extend(map(str, batch.collect())))
        .option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return sorted(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
