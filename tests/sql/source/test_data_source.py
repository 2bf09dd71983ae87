"""`format("penstock")` in a Spark session: reading and writing, batch and stream."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ColumnSchema, Format, HeaderColumn, Schema
from penstock.sql.spark.source.frame import SourceOptions, source_frame
from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
)
from penstock.testing import EphemeralBroker

NewTopic = Callable[..., str]


def fill(producer: Producer, topic: str, count: int, **more: Any) -> None:
    for delivery in producer.send_many(topic, [(b"k%d" % number, b"v%d" % number) for number in range(count)], **more):
        delivery.result()


def options(kafka: EphemeralBroker, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **more}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


def drain(frame: Any, folder: Path) -> list[Any]:
    """Run a stream to the end that there is now; its rows."""
    rows: list[Any] = []

    def take(batch: Any, _number: int) -> None:
        rows.extend(batch.collect())

    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return rows


def test_spark_finds_the_source_by_itself_and_gives_the_connectors_rows(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=5)
    producer.send(topic, b"v", key=b"k", headers=[("h", b"1")], partition=1).result()
    producer.send(topic, None, partition=0).result()
    frame = spark.read.format("penstock").options(**options(kafka, topic, includeHeaders="true")).load()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    tombstone, record = sorted(frame.collect(), key=lambda row: row.partition)
    assert (tombstone.key, tombstone.value, tombstone.headers) == (None, None, [])
    assert (record.key, record.value, record.topic, record.partition, record.offset, record.timestampType) == (
        b"k", b"v", topic, 1, 0, 0,
    )  # fmt: skip
    assert [tuple(header) for header in record.headers] == [("h", b"1")]
    assert before <= record.timestamp.astimezone(datetime.UTC) <= datetime.datetime.now(datetime.UTC)


def test_a_batch_read_has_a_beginning_and_an_end(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fill(producer, topic, 10)
    span = {"startingOffsets": f'{{"{topic}":{{"0":2}}}}', "endingOffsets": f'{{"{topic}":{{"0":7}}}}'}
    frame = spark.read.format("penstock").options(**options(kafka, topic, minPartitions="3", **span)).load()
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.offset for row in frame.select("offset").collect()) == [2, 3, 4, 5, 6]


def test_a_stream_goes_on_where_its_checkpoint_ends(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(2)
    fill(producer, topic, 25)
    chosen = options(kafka, topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    first = drain(spark.readStream.format("penstock").options(**chosen).load(), tmp_path)
    fill(producer, topic, 5)
    second = drain(spark.readStream.format("penstock").options(**chosen).load(), tmp_path)
    assert sorted(row.value for row in first) == sorted(b"v%d" % number for number in range(25))
    assert sorted(row.value for row in second) == sorted(b"v%d" % number for number in range(5))
    offsets = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1])
    assert set(offsets) == {topic}
    assert set(offsets[topic]) == {"0", "1"}


def test_a_running_stream_gives_records_as_they_come(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    seen: list[bytes] = []
    frame = spark.readStream.format("penstock").options(**options(kafka, topic, startingOffsets="earliest")).load()
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: seen.extend(row.value for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for number in range(3):
            producer.send(topic, b"%d" % number).result()
            until(lambda count=number: len(seen) > count)
        assert seen == [b"0", b"1", b"2"]
        until(lambda: json.loads(query.lastProgress["sources"][0]["latestOffset"])[topic] == {"0": 3})
    finally:
        query.stop()


def test_offsets_lost_to_retention_stop_the_query_and_name_the_range(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    from penstock import Admin, TopicPartition

    topic = new_topic()
    fill(producer, topic, 10)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    chosen = options(kafka, topic, startingOffsets=f'{{"{topic}":{{"0":2}}}}')
    with pytest.raises(Exception, match="offsets 2 to 5 were deleted"):
        drain(spark.readStream.format("penstock").options(**chosen).load(), tmp_path / "strict")
    lenient = spark.readStream.format("penstock").options(**chosen, failOnDataLoss="false").load()
    assert [row.offset for row in drain(lenient, tmp_path / "lenient")] == [6, 7, 8, 9]


def test_rows_are_written_with_key_headers_and_partition(
    spark: Any, kafka: EphemeralBroker, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    rows = [("k1", "v1", 1, [("h", bytearray(b"1"))]), (None, "v2", 0, None)]
    schema = "key STRING, value STRING, partition INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    frame = spark.createDataFrame(rows, schema)
    chosen = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
    frame.write.format("penstock").options(**chosen).mode("append").save()
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        found = []
        while len(found) < 2:
            found += consumer.poll(10_000)
    records = {record.value: record for record in found}
    assert (records[b"v1"].key, records[b"v1"].partition, list(records[b"v1"].headers)) == (b"k1", 1, [("h", b"1")])
    assert (records[b"v2"].key, records[b"v2"].partition) == (None, 0)


def test_every_row_may_name_its_topic(spark: Any, kafka: EphemeralBroker, new_topic: NewTopic) -> None:
    one, two = new_topic(), new_topic()
    frame = spark.createDataFrame([(one, "a"), (two, "b"), (one, "c")], "topic STRING, value STRING")
    chosen = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    frame.write.format("penstock").options(**chosen).mode("append").save()
    read = spark.read.format("penstock").options(**options(kafka, f"{one},{two}")).load()
    assert sorted((row.topic, bytes(row.value)) for row in read.collect()) == sorted(
        [(one, b"a"), (one, b"c"), (two, b"b")]
    )


def test_a_stream_is_written(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    source, target = new_topic(), new_topic()
    fill(producer, source, 20)
    frame = spark.readStream.format("penstock").options(**options(kafka, source, startingOffsets="earliest")).load()
    query = (
        frame.selectExpr("key", "upper(cast(value as string)) as value")
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    values = spark.read.format("penstock").options(**options(kafka, target)).load().select("value").collect()
    assert sorted(bytes(row.value) for row in values) == sorted(b"V%d" % number for number in range(20))


@pytest.mark.parametrize(
    ("columns", "chosen", "told"),
    [
        ("value STRING", {}, "no topic is named"),
        ("data STRING", {"topic": "t"}, "data"),
        ("value INT", {"topic": "t"}, "cast it to STRING"),
    ],
)
def test_rows_that_cannot_be_written_are_refused(
    spark: Any, kafka: EphemeralBroker, columns: str, chosen: dict[str, str], told: str
) -> None:
    frame = spark.createDataFrame([], columns)
    with pytest.raises(Exception, match=told):
        frame.write.format("penstock").options(**{"kafka.bootstrap.servers": kafka.bootstrap_servers}, **chosen).mode(
            "append"
        ).save()


# Typed, as the engine reads.

COLUMNS = {
    "A": BOOLEAN, "B": INTEGER, "C": DOUBLE, "D": Decimal(5, 2), "E": STRING, "F": BYTES, "G": TIME, "H": DATE,
    "I": TIMESTAMP, "J": Array(DATE), "L": Map(STRING, TIMESTAMP), "M": Struct((Field("X", BYTES), Field("Y", BIGINT))),
}  # fmt: skip
VALUE = (
    b'{"a":true,"b":"1","c":2,"d":3.10,"e":"x","f":"AQ==","g":3723000,"h":18263,"i":1577934245678,"j":[1,null],'
    b'"l":{"x":1000},"m":{"x":"Ag==","y":7}}'
)


def typed_source(topic: str, **more: Any) -> SourceNode:
    schema = Schema(
        key=(ColumnSchema("K", STRING),),
        value=tuple(ColumnSchema(name, kind) for name, kind in COLUMNS.items()),
        headers=(HeaderColumn("HEAD", "h"),),
    )
    settings = {"kind": "STREAM", "key_format": Format("KAFKA"), "value_format": Format("JSON"), **more}
    return SourceNode(name="S", topic=topic, schema=schema, **settings)


def test_a_declared_source_gives_typed_rows_and_tells_of_bad_records(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic, log = new_topic(), new_topic()
    producer.send(topic, VALUE, key="k", headers=[("h", b"1")], timestamp_ms=1000).result()
    producer.send(topic, b"{bad", key="k").result()
    chosen = SourceOptions(
        bootstrap_servers=kafka.bootstrap_servers, starting="earliest", processing_log=log, logger="processing.Q"
    )
    (row,) = drain(source_frame(spark, typed_source(topic, prefix="P_"), chosen), tmp_path)
    found = row.asDict(recursive=True)
    assert found == {
        "P_K": "k", "P_A": True, "P_B": 1, "P_C": 2.0, "P_D": found["P_D"], "P_E": "x", "P_F": b"\x01",
        "P_G": datetime.time(1, 2, 3), "P_H": datetime.date(2020, 1, 2), "P_I": found["P_I"],
        "P_J": [datetime.date(1970, 1, 2), None], "P_L": found["P_L"], "P_M": {"X": b"\x02", "Y": 7},
        "P_HEAD": b"1", "P_ROWTIME": 1000, "P_ROWPARTITION": 0, "P_ROWOFFSET": 0,
    }  # fmt: skip
    assert str(found["P_D"]) == "3.10"
    assert found["P_I"].timestamp() == 1577934245.678
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(log, 0)])
        (entry,) = consumer.poll(10_000)
    told = json.loads(entry.value)
    assert told["logger"] == "processing.Q"
    error = told["message"]["deserializationError"]
    assert (error["topic"], error["offset"], error["recordB64"]) == (topic, 1, "e2JhZA==")


def test_columns_that_nobody_asks_for_stay_behind_and_still_make_a_record_bad(
    spark: Any, kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    producer.send(topic, VALUE, key="k", headers=[("h", b"1")], timestamp_ms=1000).result()
    producer.send(topic, b'{"e":"y","b":"no number"}', key="k").result()
    chosen = SourceOptions(
        bootstrap_servers=kafka.bootstrap_servers, starting="earliest", used={"P_E", "P_ROWTIME", "OTHER"}
    )
    (row,) = drain(source_frame(spark, typed_source(topic, prefix="P_"), chosen), tmp_path)
    assert row.asDict() == {"P_K": "k", "P_E": "x", "P_ROWTIME": 1000, "P_ROWPARTITION": 0, "P_ROWOFFSET": 0}
