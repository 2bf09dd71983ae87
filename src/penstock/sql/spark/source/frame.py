"""Streaming frames of declared sources, by one of two implementations with the same rows.

The data source `penstock` decodes where it fetches. With Spark's own Kafka connector (its jars given, and the session
started with source="kafka") records come from the JVM and are decoded by the same decoder in a Python step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.sql.plan.nodes import SourceNode
from penstock.sql.spark.source.options import typed_options
from penstock.sql.spark.source.typed import TypedRows, Wanted
from penstock.sql.spark.worker_log import WorkerLog

SOURCE_SETTING: Final = "spark.penstock.source"
"""Which implementation a session uses: penstock or kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """`client_properties` are client keys under Kafka's names. `starting` counts for a query without a checkpoint.

    `used` are the columns that the query asks for; None: all.
    """

    bootstrap_servers: str
    client_properties: Mapping[str, object] = field(default_factory=dict)
    starting: str = "latest"
    group_id: str | None = None
    processing_log: str | None = None
    logger: str = "processing"
    max_rows_per_trigger: int = 200_000
    fail_on_data_loss: bool = True
    used: Collection[str] | None = None


def source_frame(spark: SparkSession, node: SourceNode, options: SourceOptions) -> DataFrame:
    """A streaming frame with the columns `RowDecoder` gives for the source, without those that are not used."""
    wanted = Wanted.of(node, options.used)
    if spark.conf.get(SOURCE_SETTING, "penstock") == "kafka":
        return _kafka_frame(spark, wanted, options)
    given = typed_options(
        _common(node, options)
        | {
            "penstock.source": wanted.to_json(),
            "penstock.processing.log": options.processing_log,
            "penstock.logger": options.logger,
            "penstock.commit.group": options.group_id,
        }
    )
    return spark.readStream.format("penstock").options(**given).load()


def _common(node: SourceNode, options: SourceOptions) -> dict[str, Any]:
    return {f"kafka.{name}": value for name, value in options.client_properties.items()} | {
        "kafka.bootstrap.servers": options.bootstrap_servers,
        "subscribe": node.topic,
        "startingOffsets": options.starting,
        "maxOffsetsPerTrigger": options.max_rows_per_trigger,
        "failOnDataLoss": options.fail_on_data_loss,
    }


def _kafka_frame(spark: SparkSession, wanted: Wanted, options: SourceOptions) -> DataFrame:
    node = wanted.source
    given = _common(node, options) | {
        "kafka.isolation.level": "read_committed",
        # Its consumer waits for a fetch that is still out before it seeks.
        "kafka.fetch.max.wait.ms": 20,
        "includeHeaders": bool(node.schema.headers),
    }
    records = spark.readStream.format("kafka").options(**typed_options(given)).load()
    return records.mapInArrow(_decoding(wanted, options), wanted.schema)


def _decoding(wanted: Wanted, options: SourceOptions) -> Any:
    text = wanted.to_json()
    client = {name: str(value) for name, value in options.client_properties.items()}
    client["bootstrap.servers"] = options.bootstrap_servers
    log = WorkerLog(client=client, topic=options.processing_log, logger=options.logger)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from TypedRows(text, log).decode(batches)

    return decode
