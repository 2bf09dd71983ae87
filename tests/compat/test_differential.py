"""The same requests to Apache Kafka and to Penstock, in every served version: the answers must say the same.

`differential` explains what a case is.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import api_versions as av
from penstock.protocol.messages import create_topics as ct
from penstock.protocol.messages import delete_topics as dt
from penstock.protocol.messages import describe_cluster as dcl
from penstock.protocol.messages import describe_configs as dc
from penstock.protocol.messages import describe_topic_partitions as dtp
from penstock.protocol.messages import fetch as fe
from penstock.protocol.messages import init_producer_id as ip
from penstock.protocol.messages import list_offsets as lo
from penstock.protocol.messages import metadata as md
from penstock.protocol.messages import offset_for_leader_epoch as ofle
from penstock.protocol.messages import produce as pr
from penstock.records.batch import compute_crc
from penstock.records.builder import Record, build_batch
from penstock.records.compression import Codec
from tests.compat.differential import Case, CaseFunction, Cases, Peers, both_brokers
from tests.integration.driving import batch, produce_request
from tests.integration.sample_requests import SERVED
from tests.integration.side_by_side import UNKNOWN_ID, Peer

NOW = int(time.time() * 1000)
CASES = Cases()
case = CASES.add


# -- Topics that exist on both -------------------------------------------------------------------------------------


def prepare(peer: Peer) -> None:
    peer.create("three", 3)
    peer.create("five", 5)
    peer.create("empty")
    peer.create("sink", 3)
    peer.create("compacted", cleanup_policy="compact")
    peer.create("append-time", message_timestamp_type="LogAppendTime")
    peer.create("small", max_message_bytes="500")
    peer.create("to-gzip", compression_type="gzip")
    peer.create("to-plain", compression_type="uncompressed")
    peer.create("own-settings", retention_ms="12345", cleanup_policy="compact,delete")
    contents = {0: [(Codec.NONE, 6)], 1: [(Codec.GZIP, 2)], 2: [(Codec.NONE, 1)]}
    for partition, batches in contents.items():
        for codec, count in batches:
            for number in range(count):
                records = [Record(NOW + number * 100 + i * 10, b"k", b"v%d-%d" % (number, i) * 10) for i in range(5)]
                produced = peer.call(
                    ApiKey.PRODUCE, 12, produce_request("three", {partition: build_batch(records, codec=codec)})
                )
                assert produced.responses[0].partition_responses[0].error_code == 0
    # Kafka's producer ids come from a block that its controller hands out a moment after the start.
    deadline = time.monotonic() + 30
    while peer.call(ApiKey.INIT_PRODUCER_ID, 4, ip.InitProducerIdRequest()).error_code and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with both_brokers(tmp_path_factory, prepare) as both:
        yield both


# -- ApiVersions ---------------------------------------------------------------------------------------------------


def software(name: str, version: str) -> CaseFunction:
    def ask(peer: Peer, api_version: int) -> Any:
        request = av.ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = peer.call(ApiKey.API_VERSIONS, api_version, request)
        return [answer.error_code, bool(answer.api_keys)]

    return ask


for software_name, software_version in [("x", "1"), ("", "1"), ("x", ""), ("-x", "1"), ("x y", "1"), ("x.y-z", "1-")]:
    case(
        f"software {software_name!r} {software_version!r}",
        ApiKey.API_VERSIONS,
        software(software_name, software_version),
    )


def served_ranges(peer: Peer, version: int) -> Any:
    request = av.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    rows = peer.call(ApiKey.API_VERSIONS, version, request).api_keys
    return {row.api_key: (row.min_version, row.max_version) for row in rows if row.api_key in SERVED}


case("ranges", ApiKey.API_VERSIONS, served_ranges)


# -- Metadata ------------------------------------------------------------------------------------------------------


def metadata(*topics: str | None, ids: tuple[str, ...] = (), **options: bool) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        wanted = [md.MetadataRequestTopic(name=name) for name in topics]
        wanted += [md.MetadataRequestTopic(name=None, topic_id=peer.id_of(name)) for name in ids]
        request = md.MetadataRequest(topics=wanted, allow_auto_topic_creation=version < 4, **options)
        return peer.call(ApiKey.METADATA, version, request)

    return ask


def named_with_id(peer: Peer, version: int) -> Any:
    topic = md.MetadataRequestTopic(name="five", topic_id=peer.id_of("three"))
    return peer.call(ApiKey.METADATA, version, md.MetadataRequest(topics=[topic]))


case("named", ApiKey.METADATA, metadata("three", "five"))
case("repeated", ApiKey.METADATA, metadata("three", "three"))
case("unknown", ApiKey.METADATA, metadata("three", "missing"), since=4)
case("invalid names", ApiKey.METADATA, metadata("three", "bad name", "x" * 250))
case("empty name", ApiKey.METADATA, metadata(""))
case("no topics", ApiKey.METADATA, metadata(), since=1)
case(
    "topic operations", ApiKey.METADATA, metadata("three", "missing", include_topic_authorized_operations=True), since=8
)
case(
    "cluster operations",
    ApiKey.METADATA,
    metadata("three", include_cluster_authorized_operations=True),
    since=8,
    until=10,
)
case("by id", ApiKey.METADATA, metadata(ids=("three", "five")), since=10)
case("unknown id", ApiKey.METADATA, metadata(ids=("missing",)), since=10)
case("name and id in one", ApiKey.METADATA, named_with_id, since=10)
case("null name", ApiKey.METADATA, metadata(None), since=10, until=11)
case(
    "null name without id",
    ApiKey.METADATA,
    metadata(None),
    since=12,
    deviates="Kafka fails with UNKNOWN_SERVER_ERROR where INVALID_TOPIC_EXCEPTION tells the client what is wrong",
)
case(
    "names beside ids",
    ApiKey.METADATA,
    metadata("five", ids=("three",)),
    since=12,
    deviates="Kafka leaves out the topics asked for by name",
)


# -- CreateTopics --------------------------------------------------------------------------------------------------


def creating(*topics: ct.CreatableTopic, validate_only: bool = True, again: bool = False) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        for topic in topics:
            topic.name = topic.name.replace("{version}", str(version))
        request = ct.CreateTopicsRequest(topics=list(topics), validate_only=validate_only, timeout_ms=10_000)
        answers = [peer.call(ApiKey.CREATE_TOPICS, version, request) for _ in range(2 if again else 1)]
        for answer in answers:
            # Kafka's quorum sets this one as a dynamic default of the cluster when it starts.
            for created in answer.topics:
                created.configs = [row for row in created.configs or () if row.name != "min.insync.replicas"]
        for topic in topics:
            topic.name = topic.name.replace(f"-v{version}", "-v{version}")
        return answers

    return ask


def new(
    name: str = "new-v{version}", partitions: int = 1, factor: int = 1, **settings: str | None
) -> ct.CreatableTopic:
    return ct.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[ct.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()],
    )


def assigned(*partitions: tuple[int, list[int]], count: int = -1, factor: int = -1) -> ct.CreatableTopic:
    topic = new(partitions=count, factor=factor)
    topic.assignments = [
        ct.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in partitions
    ]
    return topic


case("made and then there", ApiKey.CREATE_TOPICS, creating(new("made-v{version}"), validate_only=False, again=True))
case("only validated", ApiKey.CREATE_TOPICS, creating(new(), again=True))
case("exists", ApiKey.CREATE_TOPICS, creating(new("three")))
case("repeated", ApiKey.CREATE_TOPICS, creating(new("twice"), new("twice"), new("once")))
case("collision of . and _", ApiKey.CREATE_TOPICS, creating(new("own.settings_"), new("a.b", validate_only=None)))
case("none", ApiKey.CREATE_TOPICS, creating())
for count, factor in [(0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (-1, 1), (1, -1), (-1, -1), (10_001, 1), (3, 1)]:
    case(f"{count} partitions, factor {factor}", ApiKey.CREATE_TOPICS, creating(new(partitions=count, factor=factor)))
for label, topic in {
    "assigned": assigned((0, [1]), (1, [1])),
    "assigned with a count": assigned((0, [1]), count=1),
    "assigned with a factor": assigned((0, [1]), factor=1),
    "assigned with a gap": assigned((0, [1]), (2, [1])),
    "assigned to no broker": assigned((0, [])),
    "assigned to an unknown broker": assigned((0, [9])),
    "assigned to a broker twice": assigned((0, [1, 1])),
    "a partition assigned twice": assigned((0, [1]), (0, [1])),
}.items():
    case(label, ApiKey.CREATE_TOPICS, creating(topic))
for bad_name in [
    "",
    ".",
    "..",
    "a b",
    "a/b",
    "ü",
    "x" * 249,
    "x" * 250,
    "a\0b",
    "__cluster_metadata",
    "a:b",
    "a,b",
    "-",
    "_",
]:
    case(f"name {bad_name[:12]!r} of {len(bad_name)}", ApiKey.CREATE_TOPICS, creating(new(bad_name)))
SETTINGS: dict[str, list[str | None]] = {
    "nonsense": ["1"],
    "RETENTION.MS": ["1"],
    "retention.ms": ["x", None, "-1", "-2", "", "9223372036854775807", "9223372036854775808"],
    "retention.bytes": ["-2", "-1", "0"],
    "cleanup.policy": ["foo", "compact,delete", "", "compact,foo"],
    "min.insync.replicas": ["0", "2"],
    "segment.bytes": ["1", "1048576", "2147483648"],
    "segment.jitter.ms": ["-1"],
    "internal.segment.bytes": ["1000"],
    "max.message.bytes": ["-1", "0"],
    "compression.type": ["foo", "zstd", "none"],
    "compression.gzip.level": ["0", "9", "10"],
    "compression.zstd.level": ["23", "22"],
    "compression.lz4.level": ["0", "17"],
    "message.timestamp.type": ["foo", "LogAppendTime"],
    "message.timestamp.before.max.ms": ["-1", "0"],
    "message.timestamp.difference.max.ms": ["5"],
    "message.format.version": ["2.0"],
    "message.downconversion.enable": ["false"],
    "flush.messages": ["0", "1"],
    "unclean.leader.election.enable": ["maybe", "true"],
    "preallocate": ["true", "yes"],
    "min.cleanable.dirty.ratio": ["1.5", "0.3", "-0.1"],
    "min.compaction.lag.ms": ["100", "-1"],
    "max.compaction.lag.ms": ["0", "1"],
    "delete.retention.ms": ["10", "-1"],
    "file.delete.delay.ms": ["10"],
    "index.interval.bytes": ["", "0", "-1"],
    "segment.index.bytes": ["3", "4"],
    "leader.replication.throttled.replicas": ["x", "*", "0:1"],
    "local.retention.ms": ["5", "-3"],
    "local.retention.bytes": ["100"],
    "remote.storage.enable": ["true"],
}
for setting, values in SETTINGS.items():
    for value in values:
        topic = new()
        topic.configs = [ct.CreatableTopicConfig(name=setting, value=value)]
        case(f"{setting}={value}", ApiKey.CREATE_TOPICS, creating(topic))
case(
    "lags that exclude each other",
    ApiKey.CREATE_TOPICS,
    creating(new(min_compaction_lag_ms="9", max_compaction_lag_ms="5")),
)
case(
    "collision within a request",
    ApiKey.CREATE_TOPICS,
    creating(new("col.li_de"), new("col_li.de")),
    deviates="Kafka looks for collisions among existing topics only and then has two topics with one metric name",
)


# -- DeleteTopics --------------------------------------------------------------------------------------------------


def deleting(*topics: tuple[str | None, str | None]) -> CaseFunction:
    """Topics as (name, topic whose id is given)."""

    def ask(peer: Peer, version: int) -> Any:
        peer.create("doomed")
        if version < 6:
            request = dt.DeleteTopicsRequest(topic_names=[name or "" for name, _ in topics], timeout_ms=10_000)
        else:
            states = [
                dt.DeleteTopicState(name=name)
                if of is None
                else dt.DeleteTopicState(name=name, topic_id=peer.id_of(of))
                for name, of in topics
            ]
            request = dt.DeleteTopicsRequest(topics=states, timeout_ms=10_000)
        answer = peer.call(ApiKey.DELETE_TOPICS, version, request)
        peer.call(ApiKey.DELETE_TOPICS, 5, dt.DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=10_000))
        return answer

    return ask


case("by name", ApiKey.DELETE_TOPICS, deleting(("doomed", None)))
case("unknown", ApiKey.DELETE_TOPICS, deleting(("missing", None), ("doomed", None)))
case("empty name", ApiKey.DELETE_TOPICS, deleting(("", None)))
case("repeated", ApiKey.DELETE_TOPICS, deleting(("doomed", None), ("doomed", None)))
case("none", ApiKey.DELETE_TOPICS, deleting())
case("by id", ApiKey.DELETE_TOPICS, deleting((None, "doomed")), since=6)
case("unknown id", ApiKey.DELETE_TOPICS, deleting((None, "missing")), since=6)
case("neither name nor id", ApiKey.DELETE_TOPICS, deleting((None, None)), since=6)
case("name and id", ApiKey.DELETE_TOPICS, deleting(("doomed", "doomed")), since=6)
case("id repeated", ApiKey.DELETE_TOPICS, deleting((None, "doomed"), (None, "doomed")), since=6)


# -- Produce -------------------------------------------------------------------------------------------------------


def patched(data: bytes, position: int, form: str, value: int, *, good_crc: bool = True) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    if good_crc:
        struct.pack_into(">I", changed, 17, compute_crc(changed, 0, len(changed)))
    return bytes(changed)


def producing(
    records: bytes | None, topic: str = "sink", *, partitions: tuple[int, ...] = (0,), **options: Any
) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        named = peer.topic(topic, by_id=version >= 13)
        request = produce_request(named, dict.fromkeys(partitions, records), **options)
        return _without_log_start(peer.call(ApiKey.PRODUCE, version, request))

    return ask


def _without_log_start(answer: pr.ProduceResponse) -> pr.ProduceResponse:
    """Kafka tells the start of the log with some errors and not with others; no client looks at it then."""
    for topic in answer.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                partition.log_start_offset = -1
    return answer


GOOD = batch(b"v1", b"v2", timestamp=NOW)
ONE = {codec: batch(b"x" * 100, timestamp=NOW, codec=codec) for codec in Codec}
for label, records in {
    "good": GOOD,
    "empty": b"",
    "bad CRC": GOOD[:-1] + b"\x07",
    "cut in the records": GOOD[:-3],
    "cut in the header": GOOD[:40],
    "three bytes": b"abc",
    "three bytes too many": GOOD + b"\0\0\0",
    "two batches": GOOD + GOOD,
    "count too high": patched(GOOD, 57, ">i", 3),
    "count too low": patched(GOOD, 57, ">i", 1),
    "count zero": patched(GOOD, 57, ">i", 0),
    "count negative": patched(GOOD, 57, ">i", -1),
    "wrong last delta": patched(GOOD, 23, ">i", 5),
    "magic 0": patched(GOOD, 16, "b", 0),
    "magic 1": patched(GOOD, 16, "b", 1),
    "magic 3": patched(GOOD, 16, "b", 3),
    "base offset set": patched(GOOD, 0, ">q", 77),
    "leader epoch set": patched(GOOD, 12, ">i", 9),
    "control batch": batch(b"x", timestamp=NOW, control=True),
    "no records": build_batch([]),
    "from the future": batch(b"x", timestamp=NOW + 86_400_000),
    "timestamp -1": batch(b"x", timestamp=-1),
    "timestamp 0": batch(b"x", timestamp=0),
    "wrong max timestamp": patched(GOOD, 35, ">q", NOW + 5),
    "append time from a client": batch(b"x", timestamp=NOW, timestamp_type="LogAppendTime"),
    "producer without sequence": batch(b"x", timestamp=NOW, producer_id=77, producer_epoch=0, base_sequence=-1),
    "producer without epoch": batch(b"x", timestamp=NOW, producer_id=77, producer_epoch=-1, base_sequence=0),
    "sequence without producer": batch(b"x", timestamp=NOW, base_sequence=5),
    "length too long": patched(GOOD, 8, ">i", len(GOOD) + 100),
    "length too short": patched(GOOD, 8, ">i", 20, good_crc=False),
    "length negative": patched(GOOD, 8, ">i", -5, good_crc=False),
    "length of a header without records": patched(GOOD, 8, ">i", 48, good_crc=False),
    "delete horizon": patched(GOOD, 21, ">h", 64),
    "unknown attribute": patched(GOOD, 21, ">h", 128),
    **{f"compressed with {codec.name}": records for codec, records in ONE.items()},
}.items():
    case(label, ApiKey.PRODUCE, producing(records))
case("keyless on a compacted topic", ApiKey.PRODUCE, producing(batch(b"x", key=None, timestamp=NOW), "compacted"))
case("with a key on a compacted topic", ApiKey.PRODUCE, producing(GOOD, "compacted"))
case("append time", ApiKey.PRODUCE, producing(GOOD, "append-time"))
case("too large", ApiKey.PRODUCE, producing(batch(b"x" * 600, timestamp=NOW), "small"))
case("compressed by the broker", ApiKey.PRODUCE, producing(GOOD, "to-gzip"))
case("decompressed by the broker", ApiKey.PRODUCE, producing(ONE[Codec.GZIP], "to-plain"))
case("unknown topic", ApiKey.PRODUCE, producing(GOOD, "missing"))
case("unknown partitions", ApiKey.PRODUCE, producing(GOOD, partitions=(9, -1, 1)))
case("acks 2", ApiKey.PRODUCE, producing(GOOD, acks=2))
case("acks -2", ApiKey.PRODUCE, producing(GOOD, acks=-2))
case("nothing", ApiKey.PRODUCE, lambda peer, version: peer.call(ApiKey.PRODUCE, version, pr.ProduceRequest(acks=-1)))
case("transactional id on a plain batch", ApiKey.PRODUCE, producing(GOOD, transactional_id="t"))
case("empty name", ApiKey.PRODUCE, producing(GOOD, ""), until=12)
case("invalid name", ApiKey.PRODUCE, producing(GOOD, "bad name"), until=12)
case("internal topic", ApiKey.PRODUCE, producing(GOOD, "__consumer_offsets"), until=12)
for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
    case(
        f"no {codec.name} at all",
        ApiKey.PRODUCE,
        producing(patched(GOOD, 21, ">h", codec)),
        since=7 if codec is Codec.ZSTD else 0,
        deviates="Kafka fails with UNKNOWN_SERVER_ERROR, INVALID_RECORD says whose fault it is",
    )
case(
    "unknown codec",
    ApiKey.PRODUCE,
    producing(patched(GOOD, 21, ">h", 7)),
    deviates="Kafka fails with UNKNOWN_SERVER_ERROR, UNSUPPORTED_COMPRESSION_TYPE says whose fault it is",
)


def sequences(*steps: tuple[int, int, int], first_id: int) -> CaseFunction:
    """Batches as (epoch, first sequence, records) of one producer to one partition."""

    def ask(peer: Peer, version: int) -> Any:
        answers = []
        for epoch, sequence, count in steps:
            values = [b"%d" % index for index in range(count)]
            records = batch(
                *values, timestamp=NOW, producer_id=first_id + version, producer_epoch=epoch, base_sequence=sequence
            )
            named = peer.topic("sink", by_id=version >= 13)
            answer = peer.call(ApiKey.PRODUCE, version, produce_request(named, {2: records}))
            answers.append(_without_log_start(answer))
        return answers

    return ask


IN_ORDER = [(0, 0, 2), *((0, sequence, 1) for sequence in range(2, 8))]
case("producer: in order", ApiKey.PRODUCE, sequences(*IN_ORDER, first_id=10_000))
case("producer: duplicates among the last five", ApiKey.PRODUCE, sequences(*IN_ORDER, *IN_ORDER[2:], first_id=11_000))
case("producer: older duplicates", ApiKey.PRODUCE, sequences(*IN_ORDER, *IN_ORDER[:2], first_id=12_000))
case("producer: a gap", ApiKey.PRODUCE, sequences((0, 0, 1), (0, 2, 1), (0, 1, 1), first_id=13_000))
case("producer: overlapping", ApiKey.PRODUCE, sequences((0, 0, 3), (0, 1, 3), first_id=14_000))
case(
    "producer: new epoch",
    ApiKey.PRODUCE,
    sequences((0, 0, 1), (1, 5, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1), first_id=15_000),
)
case("producer: unknown, not from 0", ApiKey.PRODUCE, sequences((3, 40, 1), (3, 41, 1), first_id=16_000))
case(
    "producer: sequence wraps",
    ApiKey.PRODUCE,
    sequences((0, 2**31 - 2, 2), (0, 0, 1), (0, 0, 1), (0, 2, 1), first_id=17_000),
)
case("producer: wraps within a batch", ApiKey.PRODUCE, sequences((0, 2**31 - 2, 4), (0, 2, 1), first_id=18_000))


# -- Fetch ---------------------------------------------------------------------------------------------------------


def wanted(peer: Peer, version: int, topic: str, *partitions: dict[str, int]) -> fe.FetchTopic:
    defaults: dict[str, Any] = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
    asked = [fe.FetchPartition(**{**defaults, **each}) for each in partitions]
    if version >= 13:
        return fe.FetchTopic(topic_id=peer.id_of(topic), partitions=asked)
    return fe.FetchTopic(topic=topic, partitions=asked)


def fetching(*topics: tuple[str, list[dict[str, int]]], **options: Any) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        defaults = {"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1}
        asked = [wanted(peer, version, topic, *partitions) for topic, partitions in topics]
        answer = peer.call(ApiKey.FETCH, version, fe.FetchRequest(**{**defaults, **options}, topics=asked))
        return _with_empty_list(answer)

    return ask


def _with_empty_list(answer: fe.FetchResponse) -> fe.FetchResponse:
    for topic in answer.responses:
        for partition in topic.partitions:
            if partition.error_code in (3, 100) and partition.aborted_transactions is None:
                # An error that Kafka finds before it reads has an empty list, one that it finds later has null.
                partition.aborted_transactions = []
    return answer


for offset in (0, 3, 7, 29, 30, 31, -1, 1000):
    case(f"from {offset}", ApiKey.FETCH, fetching(("three", [{"fetch_offset": offset}])))
for size in (0, 1, 100, 700):
    case(f"partition_max_bytes {size}", ApiKey.FETCH, fetching(("three", [{"partition_max_bytes": size}])))
    case(
        f"max_bytes {size}",
        ApiKey.FETCH,
        fetching(("three", [{"partition": 0}, {"partition": 1}, {"partition": 2}]), max_bytes=size),
    )
case(
    "an empty partition first",
    ApiKey.FETCH,
    fetching(("empty", [{}]), ("three", [{"partition_max_bytes": 10}]), max_bytes=10),
)
case("several topics", ApiKey.FETCH, fetching(("three", [{}, {"partition": 1}]), ("empty", [{}])))
case("unknown topic", ApiKey.FETCH, fetching(("missing", [{}]), ("three", [{}])))
case("unknown partitions", ApiKey.FETCH, fetching(("three", [{"partition": 9}, {}, {"partition": -1}])))
case("read committed", ApiKey.FETCH, fetching(("three", [{}]), ("empty", [{}]), isolation_level=1))
case("nothing", ApiKey.FETCH, fetching())
for epoch in (0, 1, 7):
    case(f"current leader epoch {epoch}", ApiKey.FETCH, fetching(("three", [{"current_leader_epoch": epoch}])), since=9)
for epoch, offset in [(0, 0), (0, 30), (0, 29), (1, 30), (5, 10), (0, 31)]:
    asked = [{"last_fetched_epoch": epoch, "fetch_offset": offset}]
    case(f"last fetched epoch {epoch} at {offset}", ApiKey.FETCH, fetching(("three", asked)), since=12)
case(
    "a partition twice",
    ApiKey.FETCH,
    fetching(("three", [{}, {}])),
    deviates="Kafka answers once, Penstock as often as it was asked",
)


def session(peer: Peer, version: int) -> Any:
    answers: list[Any] = []

    def step(session_id: int, epoch: int, *topics: fe.FetchTopic, forget: str | None = None) -> fe.FetchResponse:
        forgotten = []
        if forget is not None:
            named = {"topic_id": peer.id_of(forget)} if version >= 13 else {"topic": forget}
            forgotten = [fe.ForgottenTopic(partitions=[0, 1], **named)]
        request = fe.FetchRequest(
            min_bytes=1,
            session_id=session_id,
            session_epoch=epoch,
            topics=list(topics),
            forgotten_topics_data=forgotten,
        )
        answer = _with_empty_list(peer.call(ApiKey.FETCH, version, request))
        answers.append([answer, answer.session_id == session_id])
        return answer

    everything = [
        wanted(peer, version, "three", {}, {"partition": 1}),
        wanted(peer, version, "empty", {}),
    ]
    at_the_end = wanted(peer, version, "three", {"fetch_offset": 30}, {"partition": 1, "fetch_offset": 10})
    first = step(0, 0, *everything).session_id
    step(first, 1)
    step(first, 2, at_the_end)
    step(first, 3)
    step(first, 9)
    step(first, 4)
    step(first, 5, forget="empty")
    step(first, 6, wanted(peer, version, "five", {}))
    step(first, 7, wanted(peer, version, "missing", {}))
    step(first, 8)
    step(first, 9, wanted(peer, version, "three", {"partition": 9}))
    step(first, 10)
    step(first, -1)
    step(first, 11)
    step(12345, 1)
    step(12345, 0)
    step(12345, -1)
    step(0, 5, *everything)
    step(0, -5, *everything)
    second = step(0, 0, at_the_end).session_id
    step(second, 1, forget="three")
    step(second, 2)
    third = step(0, 0, *everything).session_id
    step(third, 0, *everything)
    step(third, 1)
    return answers


case("a session", ApiKey.FETCH, session, since=7)


def mixed_session(peer: Peer, version: int) -> Any:
    first = peer.call(
        ApiKey.FETCH, 12, fe.FetchRequest(session_id=0, session_epoch=0, topics=[wanted(peer, 12, "three", {})])
    )
    return [
        peer.call(ApiKey.FETCH, each, fe.FetchRequest(session_id=first.session_id, session_epoch=1))
        for each in (13, 12)
    ]


case("names and ids in one session", ApiKey.FETCH, mixed_session, since=13, until=13)


# -- ListOffsets, OffsetForLeaderEpoch -----------------------------------------------------------------------------


def listing(
    *partitions: tuple[int, int], topic: str = "three", isolation: int = 0, epoch: int = -1, replica: int = -1
) -> CaseFunction:
    """Partitions as (index, timestamp)."""

    def ask(peer: Peer, version: int) -> Any:
        asked = [
            lo.ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch if version >= 4 else -1
            )
            for index, timestamp in partitions
        ]
        request = lo.ListOffsetsRequest(
            replica_id=replica,
            isolation_level=isolation if version >= 2 else 0,
            topics=[lo.ListOffsetsTopic(name=topic, partitions=asked)],
        )
        return peer.call(ApiKey.LIST_OFFSETS, version, request)

    return ask


for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0):
    everywhere = [(partition, timestamp) for partition in (0, 1, 7, -1)]
    case(f"timestamp {timestamp}", ApiKey.LIST_OFFSETS, listing(*everywhere))
    case(f"timestamp {timestamp}, empty log", ApiKey.LIST_OFFSETS, listing((0, timestamp), topic="empty"))
    case(f"timestamp {timestamp}, read committed", ApiKey.LIST_OFFSETS, listing((0, timestamp), isolation=1))
for distance in (-1, 0, 35, 40, 41, 130, 540, 541, 86_400_000):
    case(f"now + {distance} ms", ApiKey.LIST_OFFSETS, listing((0, NOW + distance), (1, NOW + distance)))
for name in ("missing", "", "bad name"):
    case(f"topic {name!r}", ApiKey.LIST_OFFSETS, listing((0, -1), topic=name))
for replica in (-2, 1, 5):
    case(f"replica {replica}", ApiKey.LIST_OFFSETS, listing((0, -1), (1, -2), replica=replica))
for epoch in (0, 1, 5):
    case(f"current leader epoch {epoch}", ApiKey.LIST_OFFSETS, listing((0, -1), epoch=epoch), since=4)
case("repeated", ApiKey.LIST_OFFSETS, listing((0, -1), (0, -1), (1, -1)))


def epoch_end(topic: str, partition: int, current: int, epoch: int) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        asked = ofle.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        request = ofle.OffsetForLeaderEpochRequest(topics=[ofle.OffsetForLeaderTopic(topic=topic, partitions=[asked])])
        return peer.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)

    return ask


for current in (-1, 0, 1):
    for epoch in (-2, -1, 0, 1, 5):
        case(f"epoch {epoch} at {current}", ApiKey.OFFSET_FOR_LEADER_EPOCH, epoch_end("three", 0, current, epoch))
case("unknown partition", ApiKey.OFFSET_FOR_LEADER_EPOCH, epoch_end("three", 9, -1, 0))
case("unknown topic", ApiKey.OFFSET_FOR_LEADER_EPOCH, epoch_end("missing", 0, -1, 0))
case("empty log", ApiKey.OFFSET_FOR_LEADER_EPOCH, epoch_end("empty", 0, 0, 0))


# -- InitProducerId ------------------------------------------------------------------------------------------------


def producer(**options: Any) -> CaseFunction:
    return lambda peer, version: peer.call(ApiKey.INIT_PRODUCER_ID, version, ip.InitProducerIdRequest(**options))


case("plain", ApiKey.INIT_PRODUCER_ID, producer())
case("time-out -1", ApiKey.INIT_PRODUCER_ID, producer(transaction_timeout_ms=-1))
case("empty transactional id", ApiKey.INIT_PRODUCER_ID, producer(transactional_id=""))
case("an id and its epoch", ApiKey.INIT_PRODUCER_ID, producer(producer_id=5, producer_epoch=3), since=3)
case("an id without epoch", ApiKey.INIT_PRODUCER_ID, producer(producer_id=5), since=3)
case("an epoch without id", ApiKey.INIT_PRODUCER_ID, producer(producer_epoch=3), since=3)


# -- Describing ----------------------------------------------------------------------------------------------------


def cluster(**options: Any) -> CaseFunction:
    return lambda peer, version: peer.call(ApiKey.DESCRIBE_CLUSTER, version, dcl.DescribeClusterRequest(**options))


case("plain", ApiKey.DESCRIBE_CLUSTER, cluster())
case("operations", ApiKey.DESCRIBE_CLUSTER, cluster(include_cluster_authorized_operations=True))
case("fenced brokers", ApiKey.DESCRIBE_CLUSTER, cluster(include_fenced_brokers=True), since=2)
for endpoint_type in (0, 2, 3):
    case(f"endpoint type {endpoint_type}", ApiKey.DESCRIBE_CLUSTER, cluster(endpoint_type=endpoint_type), since=1)


def pages(*topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        request = dtp.DescribeTopicPartitionsRequest(
            topics=[dtp.TopicRequest(name=name) for name in topics],
            response_partition_limit=limit,
            cursor=None if cursor is None else dtp.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        return peer.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, version, request)

    return ask


case("named", ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages("three", "five"))
case("repeated", ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages("three", "three"))
case("unknown", ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages("three", "missing"))
case("invalid name", ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages("three", "bad name"))
for limit in (-1, 0, 1, 3, 5, 6, 8):
    case(f"pages of {limit}", ApiKey.DESCRIBE_TOPIC_PARTITIONS, pages("five", "missing", "three", limit=limit))
for name, index in [("five", 2), ("three", 0), ("three", 9), ("three", -1), ("g", 2), ("zzz", 0), ("missing", 0)]:
    case(
        f"cursor at {name} {index}",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        pages("five", "missing", "three", limit=3, cursor=(name, index)),
    )


def configs(kind: int, name: str, keys: list[str] | None = None, *, synonyms: bool = True) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        resource = dc.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        request = dc.DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
        answer = peer.call(ApiKey.DESCRIBE_CONFIGS, version, request)
        for result in answer.results:
            result.configs = [row for row in result.configs if row.name != "min.insync.replicas"]
        return answer

    return ask


TOPIC, BROKER = 2, 4
case("topic", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, "three"))
case("topic without synonyms", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, "three", synonyms=False))
case("topic with settings", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, "own-settings"))
case("some keys", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, "own-settings", ["retention.ms", "nonsense"]))
case("no keys", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, "own-settings", []))
for name in ("missing", "bad name", ""):
    case(f"topic {name!r}", ApiKey.DESCRIBE_CONFIGS, configs(TOPIC, name))
for name in ("77", "abc", ""):
    case(f"broker {name!r}", ApiKey.DESCRIBE_CONFIGS, configs(BROKER, name))
case("broker keys", ApiKey.DESCRIBE_CONFIGS, configs(BROKER, "1", ["num.io.threads", "log.retention.ms", "nonsense"]))
for kind in (0, 1, 3, 99, -1):
    case(f"type {kind}", ApiKey.DESCRIBE_CONFIGS, configs(kind, "1"))


@pytest.mark.parametrize("case", CASES.parameters())
def test_answers_as_kafka_does(peers: Peers, case: Case) -> None:
    case.check(peers)


def test_unknown_ids_are_unknown(peers: Peers) -> None:
    """The cases rely on it."""
    assert all(peer.id_of("missing") == UNKNOWN_ID for peer in peers)
