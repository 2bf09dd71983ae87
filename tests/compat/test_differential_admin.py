"""Administration put to Apache Kafka and to Penstock in every served version: the answers must say the same.

`differential` explains what a case is. Cases that change something make what they change, or put it back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_configs as ac
from penstock.protocol.messages import alter_partition_reassignments as apr
from penstock.protocol.messages import alter_replica_log_dirs as arl
from penstock.protocol.messages import create_partitions as cp
from penstock.protocol.messages import delete_records as dr
from penstock.protocol.messages import delete_topics as dt
from penstock.protocol.messages import describe_configs as dc
from penstock.protocol.messages import describe_log_dirs as dld
from penstock.protocol.messages import elect_leaders as el
from penstock.protocol.messages import incremental_alter_configs as iac
from penstock.protocol.messages import list_config_resources as lcr
from penstock.protocol.messages import list_offsets as lo
from penstock.protocol.messages import list_partition_reassignments as lpr
from penstock.protocol.messages import metadata as md
from penstock.protocol.messages import update_features as uf
from penstock.records.builder import Record, build_batch
from tests.compat.differential import Case, CaseFunction, Cases, Peers, both_brokers
from tests.integration.driving import fetch_request, fetch_topic, produce_request
from tests.integration.side_by_side import Peer

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
NOW = int(time.time() * 1000)
CASES = Cases()
case = CASES.add


def fill(peer: Peer, topic: str, partition: int = 0, count: int = 10) -> None:
    deadline = time.monotonic() + 10
    for number in range(count):
        records = build_batch([Record(NOW + number, b"k", b"v%d" % number)])
        # Kafka's broker knows a topic a moment after its controller has made it.
        while (
            peer.call(ApiKey.PRODUCE, 12, produce_request(topic, {partition: records}))
            .responses[0]
            .partition_responses[0]
            .error_code
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def prepare(peer: Peer) -> None:
    peer.create("three", 3)
    peer.create("empty")
    peer.create("compacted", cleanup_policy="compact")
    peer.create("both", cleanup_policy="compact,delete")
    peer.create("own-settings", retention_ms="12345", cleanup_policy="compact,delete")
    fill(peer, "three", 0)
    fill(peer, "compacted")


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with both_brokers(tmp_path_factory, prepare) as both:
        yield both


def drop(peer: Peer, topic: str) -> None:
    peer.call(ApiKey.DELETE_TOPICS, 5, dt.DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000))


def settled(peer: Peer, look: Any) -> Any:
    """What a look shows; at Kafka, once several in a row show the same: its broker follows its controller later."""
    seen = [look()]
    while peer.name == "kafka" and len(seen) < 20 and (len(seen) < 4 or any(each != seen[-1] for each in seen[-3:])):
        time.sleep(0.07)
        seen.append(look())
    return seen[-1]


# -- CreatePartitions ----------------------------------------------------------------------------------------------


def more(name: str, count: int, assignments: Sequence[list[int]] | None = None) -> cp.CreatePartitionsTopic:
    given = None if assignments is None else [cp.CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return cp.CreatePartitionsTopic(name=name, count=count, assignments=given)


def adding(*topics: cp.CreatePartitionsTopic, validate_only: bool = True) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        peer.create("grows", 2)
        request = cp.CreatePartitionsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)
        answer = peer.call(ApiKey.CREATE_PARTITIONS, version, request)
        wanted = md.MetadataRequest(topics=[md.MetadataRequestTopic(name="grows")], allow_auto_topic_creation=False)
        count = settled(peer, lambda: len(peer.call(ApiKey.METADATA, 9, wanted).topics[0].partitions))
        drop(peer, "grows")
        return [answer, count]

    return ask


for label, topics in {
    "more": [more("grows", 5)],
    "assigned": [more("grows", 4, [[1], [1]])],
    "too few assigned": [more("grows", 4, [[1]])],
    "too many assigned": [more("grows", 3, [[1], [1]])],
    "none assigned": [more("grows", 4, [])],
    "assigned to no broker": [more("grows", 3, [[]])],
    "assigned to an unknown broker": [more("grows", 3, [[9]])],
    "assigned to a broker twice": [more("grows", 3, [[1, 1]])],
    "same": [more("grows", 2)],
    "same with assignments": [more("grows", 2, [[1]])],
    "fewer": [more("grows", 1)],
    "zero": [more("grows", 0)],
    "negative": [more("grows", -1)],
    "unknown": [more("missing", 3), more("grows", 3)],
    "repeated": [more("grows", 3), more("grows", 4)],
    "empty name": [more("", 3)],
    "bad name": [more("a b", 3)],
    "no topics": [],
}.items():
    case(label, ApiKey.CREATE_PARTITIONS, adding(*topics, validate_only=False))
    case(f"{label}, only validated", ApiKey.CREATE_PARTITIONS, adding(*topics))


# -- IncrementalAlterConfigs and AlterConfigs ----------------------------------------------------------------------


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> iac.AlterConfigsResource:
    rows = [iac.AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in configs]
    return iac.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)


def described(peer: Peer, kind: int, name: str, keys: list[str]) -> Any:
    asked = dc.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = dc.DescribeConfigsRequest(resources=[asked], include_synonyms=True)

    def look() -> Any:
        return [
            (
                row.name,
                row.value,
                row.config_source,
                row.is_sensitive,
                [(s.name, s.value, s.source) for s in row.synonyms],
            )
            for row in sorted(
                peer.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results[0].configs, key=lambda row: row.name
            )
        ]

    return settled(peer, look)


def reset(peer: Peer, kind: int, name: str, keys: list[str]) -> None:
    rows = [(key, DELETE, None) for key in keys]
    request = iac.IncrementalAlterConfigsRequest(resources=[resource(kind, name, *rows)])
    peer.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)


def altering(*resources: iac.AlterConfigsResource, validate_only: bool = False) -> CaseFunction:
    """The answer, and what the resources have then; brokers are put back."""

    def ask(peer: Peer, version: int) -> Any:
        peer.create("altered", retention_ms="1000000", cleanup_policy="compact")
        request = iac.IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
        answer = peer.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)
        return [_ordered(answer), _aftermath(peer, resources)]

    return ask


def _ordered(answer: Any) -> Any:
    if not hasattr(answer, "responses"):
        return answer
    return sorted((row.resource_type, row.resource_name, row.error_code) for row in answer.responses)


def _aftermath(peer: Peer, resources: Sequence[Any]) -> Any:
    found = []
    for each in resources:
        keys = [row.name for row in each.configs if row.name not in ("listeners", "log.dirs")]
        if each.resource_type in (TOPIC, BROKER) and keys:
            found.append(described(peer, each.resource_type, each.resource_name, keys))
        if each.resource_type == BROKER and each.resource_name in ("", "1"):
            reset(peer, BROKER, each.resource_name, keys)
    drop(peer, "altered")
    return found


def topic_change(*configs: tuple[str, int, str | None], **options: bool) -> CaseFunction:
    return altering(resource(TOPIC, "altered", *configs), **options)


INCREMENTAL = ApiKey.INCREMENTAL_ALTER_CONFIGS
for label, steps in {
    "set": [("retention.ms", SET, "5000")],
    "set two": [("segment.bytes", SET, "2097152"), ("max.message.bytes", SET, "2000")],
    "set what it is": [("retention.ms", SET, "1000000")],
    "delete": [("retention.ms", DELETE, None)],
    "delete with a value": [("retention.ms", DELETE, "5")],
    "delete what is not set": [("segment.ms", DELETE, None)],
    "append": [("cleanup.policy", APPEND, "delete")],
    "append what is there": [("cleanup.policy", APPEND, "compact")],
    "append nothing": [("cleanup.policy", APPEND, "")],
    "append two": [("cleanup.policy", APPEND, "compact,delete")],
    "subtract": [("cleanup.policy", SUBTRACT, "delete")],
    "subtract the last": [("cleanup.policy", SUBTRACT, "compact")],
    "append to a default": [("leader.replication.throttled.replicas", APPEND, "0:1")],
    "append to a number": [("retention.ms", APPEND, "5")],
    "subtract from a number": [("retention.ms", SUBTRACT, "5")],
    "append to the unknown": [("nonsense", APPEND, "5")],
    "append a bad word": [("cleanup.policy", APPEND, "foo")],
    "set to nothing": [("retention.ms", SET, None)],
    "set to an empty text": [("retention.ms", SET, "")],
    "append nothing at all": [("cleanup.policy", APPEND, None)],
    "unknown key": [("nonsense", SET, "1")],
    "delete an unknown key": [("nonsense", DELETE, None)],
    "bad value": [("retention.ms", SET, "x")],
    "out of range": [("segment.bytes", SET, "1")],
    "good and bad": [("retention.ms", SET, "5"), ("segment.bytes", SET, "1")],
    "key repeated": [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
    "no keys": [],
    "lags that exclude each other": [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")],
    "tiered storage": [("remote.storage.enable", SET, "true")],
}.items():
    case(label, INCREMENTAL, topic_change(*steps))
    case(f"{label}, only validated", INCREMENTAL, topic_change(*steps, validate_only=True))
for name in ("missing", "", "a b", "x" * 250):
    case(f"topic {name[:10]!r}", INCREMENTAL, altering(resource(TOPIC, name, ("retention.ms", SET, "5"))))
    case(f"topic {name[:10]!r}, bad", INCREMENTAL, altering(resource(TOPIC, name, ("retention.ms", SET, "x"))))
case(
    "resources repeated",
    INCREMENTAL,
    altering(resource(TOPIC, "altered", ("retention.ms", SET, "5")), resource(TOPIC, "altered")),
)
case(
    "one good, one bad",
    INCREMENTAL,
    altering(
        resource(TOPIC, "missing", ("retention.ms", SET, "5")), resource(TOPIC, "altered", ("retention.ms", SET, "5"))
    ),
)
case("no resources", INCREMENTAL, altering())
case(
    "unknown operation",
    INCREMENTAL,
    topic_change(("retention.ms", 9, "5")),
    deviates="Kafka fails with UNKNOWN_SERVER_ERROR where INVALID_REQUEST tells the client what is wrong",
)
case(
    "settings of a group",
    INCREMENTAL,
    altering(resource(GROUP, "x", ("nonsense", SET, "5"))),
    deviates="groups have no settings here, so that INVALID_REQUEST stands for every key",
)
for kind in (0, 1, 3, 99, CLIENT_METRICS):
    case(f"resource type {kind}", INCREMENTAL, altering(resource(kind, "x", ("nonsense", SET, "5"))))

BROKER_STEPS: dict[str, list[tuple[str, int, str | None]]] = {
    "set": [("message.max.bytes", SET, "2000000")],
    "retention": [("log.retention.ms", SET, "100000")],
    "segment size": [("log.segment.bytes", SET, "2097152")],
    "bad value": [("log.segment.bytes", SET, "x")],
    "out of range": [("log.segment.bytes", SET, "1")],
    "retention of zero": [("log.retention.ms", SET, "0")],
    "needs a restart": [("num.partitions", SET, "3")],
    "needs a restart, deleted": [("num.partitions", DELETE, None)],
    "hours": [("log.retention.hours", SET, "3")],
    "rack": [("broker.rack", SET, "3")],
    "directories": [("log.dirs", SET, "/tmp")],
    "unknown key": [("nonsense", SET, "3")],
    "append": [("log.cleanup.policy", APPEND, "compact")],
    "subtract": [("log.cleanup.policy", SUBTRACT, "delete")],
    "append to a number": [("log.retention.ms", APPEND, "3")],
    "append to the unknown": [("nonsense", APPEND, "3")],
    "bad word": [("log.cleanup.policy", SET, "foo")],
    "keystore without a listener": [("ssl.keystore.location", SET, "/tmp/x")],
    "threads doubled": [("num.io.threads", SET, "16")],
    "threads halved": [("num.io.threads", SET, "4")],
    "too many threads": [("num.io.threads", SET, "17")],
    "too few threads": [("num.io.threads", SET, "3")],
    "no threads": [("num.io.threads", SET, "0")],
    "cleaner threads": [("log.cleaner.threads", SET, "3")],
    "connections": [("max.connections.per.ip", SET, "100"), ("max.connections", SET, "1000")],
    "connections of an address": [("max.connections.per.ip.overrides", SET, "10.1.1.1:5")],
    "connections of no address": [("max.connections.per.ip.overrides", SET, "10.1.1.1")],
    "listeners": [("listeners", SET, "PLAINTEXT://:1234")],
    "verification": [("transaction.partition.verification.enable", SET, "false")],
    "producer ids": [("producer.id.expiration.ms", SET, "100000")],
    "throttle": [("leader.replication.throttled.rate", SET, "1000")],
    "compression": [("compression.type", SET, "zstd"), ("compression.zstd.level", SET, "5")],
    "nothing": [("message.max.bytes", SET, None)],
    "no keys": [],
    "unknown operation": [("message.max.bytes", 9, "5")],
}
for label, steps in BROKER_STEPS.items():
    for who, name in (("broker", "1"), ("all brokers", "")):
        case(f"{who}: {label}", INCREMENTAL, altering(resource(BROKER, name, *steps)))
        case(
            f"{who}: {label}, only validated",
            INCREMENTAL,
            altering(resource(BROKER, name, *steps), validate_only=True),
        )
for name in ("2", "x", "-1"):
    case(f"broker {name}", INCREMENTAL, altering(resource(BROKER, name, ("message.max.bytes", SET, "2000000"))))


for who, name in (("broker", "1"), ("all brokers", "")):
    case(
        f"{who}: lags that exclude each other",
        INCREMENTAL,
        altering(
            resource(
                BROKER,
                name,
                ("log.cleaner.min.compaction.lag.ms", SET, "9"),
                ("log.cleaner.max.compaction.lag.ms", SET, "5"),
            )
        ),
        deviates="Kafka takes them, and no topic could be made with them",
    )


def layers(peer: Peer, version: int) -> Any:
    """A broker's own value over that of all, seen by a topic too; then one after the other goes."""
    seen = []
    steps = [("", SET, "2000000"), ("1", SET, "3000000"), ("", DELETE, None), ("1", DELETE, None)]
    for name, operation, value in steps:
        row = ("message.max.bytes", operation, value)
        request = iac.IncrementalAlterConfigsRequest(resources=[resource(BROKER, name, row)])
        peer.call(INCREMENTAL, version, request)
        seen += [described(peer, BROKER, which, ["message.max.bytes"]) for which in ("1", "")]
        seen.append(described(peer, TOPIC, "three", ["max.message.bytes"]))
    return seen


case("layers", INCREMENTAL, layers)


def effect_of_largest_message(peer: Peer, version: int) -> Any:
    """A topic's limit counts for the next batch."""
    seen = []
    for value in ("100", "100000"):
        row = ("max.message.bytes", SET, value)
        peer.call(INCREMENTAL, version, iac.IncrementalAlterConfigsRequest(resources=[resource(TOPIC, "empty", row)]))
        described(peer, TOPIC, "empty", ["max.message.bytes"])
        records = build_batch([Record(NOW, b"k", b"v" * 1000)])
        answer = peer.call(ApiKey.PRODUCE, 12, produce_request("empty", {0: records}))
        seen.append(answer.responses[0].partition_responses[0].error_code)
    return seen


case("effect on the next batch", INCREMENTAL, effect_of_largest_message)


def replacing(
    kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False, twice: bool = False
) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        peer.create("altered", retention_ms="1000000", cleanup_policy="compact")
        rows = [ac.AlterableConfig(name=key, value=value) for key, value in configs]
        asked = ac.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
        resources = [asked] * (2 if twice else 1)
        answer = peer.call(
            ApiKey.ALTER_CONFIGS, version, ac.AlterConfigsRequest(resources=resources, validate_only=validate_only)
        )
        wider = resource(kind, name, *[(key, SET, value) for key, value in configs], ("retention.ms", SET, ""))
        return [_ordered(answer), _aftermath(peer, [wider])]

    return ask


for label, arguments in {
    "replace": (TOPIC, "altered", ("segment.bytes", "2097152")),
    "to nothing": (TOPIC, "altered"),
    "the same": (TOPIC, "altered", ("retention.ms", "1000000"), ("cleanup.policy", "compact")),
    "null": (TOPIC, "altered", ("segment.bytes", None)),
    "unknown key": (TOPIC, "altered", ("nonsense", "1")),
    "bad value": (TOPIC, "altered", ("segment.bytes", "1")),
    "key repeated": (TOPIC, "altered", ("segment.bytes", "2097152"), ("segment.bytes", "3097152")),
    "unknown topic": (TOPIC, "missing", ("segment.bytes", "2097152")),
    "empty topic": (TOPIC, "", ("segment.bytes", "2097152")),
    "broker": (BROKER, "1", ("message.max.bytes", "2000000")),
    "broker, bad": (BROKER, "1", ("message.max.bytes", "x")),
    "broker, needs a restart": (BROKER, "1", ("num.partitions", "2")),
    "another broker": (BROKER, "2", ("message.max.bytes", "2000000")),
    "unknown kind": (77, "x", ("message.max.bytes", "2000000")),
    "loggers": (BROKER_LOGGER, "1", ("root", "INFO")),
}.items():
    case(label, ApiKey.ALTER_CONFIGS, replacing(*arguments))
    case(f"{label}, only validated", ApiKey.ALTER_CONFIGS, replacing(*arguments, validate_only=True))
case(
    "all brokers",
    ApiKey.ALTER_CONFIGS,
    replacing(BROKER, "", ("message.max.bytes", "2000000")),
    deviates="Kafka's quorum sets min.insync.replicas for all brokers when it starts, and lets nobody take it away",
)
case(
    "resources repeated",
    ApiKey.ALTER_CONFIGS,
    replacing(TOPIC, "altered", ("segment.bytes", "2097152"), twice=True),
    until=0,
    deviates="Kafka does not answer",
)


# -- DeleteRecords -------------------------------------------------------------------------------------------------


def trimming(*wanted: tuple[str, int, int], cleanup: str = "delete") -> CaseFunction:
    """The answer, where the log begins then, and what a fetch from its old beginning is told."""

    def ask(peer: Peer, version: int) -> Any:
        peer.create("trimmed", 2, cleanup_policy=cleanup)
        fill(peer, "trimmed")
        topics: dict[str, dr.DeleteRecordsTopic] = {}
        for name, index, offset in wanted:
            topic = topics.setdefault(name, dr.DeleteRecordsTopic(name=name))
            topic.partitions.append(dr.DeleteRecordsPartition(partition_index=index, offset=offset))
        request = dr.DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=10_000)
        answer = peer.call(ApiKey.DELETE_RECORDS, version, request)
        ends = [
            lo.ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    lo.ListOffsetsTopic(
                        name="trimmed", partitions=[lo.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
                    )
                ],
            )
            for timestamp in (-2, -1, NOW)
        ]
        offsets = [peer.call(ApiKey.LIST_OFFSETS, 9, each) for each in ends]
        fetched = peer.call(ApiKey.FETCH, 12, fetch_request(fetch_topic("trimmed", {0: 0})))
        data = fetched.responses[0].partitions[0]
        drop(peer, "trimmed")
        return [answer, offsets, data.error_code, data.log_start_offset]

    return ask


for offset in (0, 1, 5, 9, 10, 11, -1, -2, 2**62):
    case(f"up to {offset}", ApiKey.DELETE_RECORDS, trimming(("trimmed", 0, offset)))
case("empty partition", ApiKey.DELETE_RECORDS, trimming(("trimmed", 1, -1), ("trimmed", 0, 3)))
case("unknown partition", ApiKey.DELETE_RECORDS, trimming(("trimmed", 7, 1), ("trimmed", 0, 3)))
case("negative partition", ApiKey.DELETE_RECORDS, trimming(("trimmed", -1, 1)))
case("unknown topic", ApiKey.DELETE_RECORDS, trimming(("missing", 0, 1)))
case("empty name", ApiKey.DELETE_RECORDS, trimming(("", 0, 1)))
case("bad name", ApiKey.DELETE_RECORDS, trimming(("a b", 0, 1)))
case("none", ApiKey.DELETE_RECORDS, trimming())
for policy in ("compact", "compact,delete"):
    case(f"policy {policy}", ApiKey.DELETE_RECORDS, trimming(("trimmed", 0, 3), cleanup=policy))


# -- DescribeLogDirs -----------------------------------------------------------------------------------------------


def log_dirs(*wanted: tuple[str, list[int]], everything: bool = False) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        topics = [dld.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in wanted]
        request = dld.DescribeLogDirsRequest(topics=None if everything else topics)
        answer = peer.call(ApiKey.DESCRIBE_LOG_DIRS, version, request)
        for result in answer.results:
            result.log_dir = ""
            result.total_bytes, result.usable_bytes = result.total_bytes > 0, result.usable_bytes > 0
            result.topics = [topic for topic in result.topics if not topic.name.startswith("__")]
        return answer

    return ask


case("named", ApiKey.DESCRIBE_LOG_DIRS, log_dirs(("three", [0, 1])))
case("all", ApiKey.DESCRIBE_LOG_DIRS, log_dirs(everything=True))
case("none", ApiKey.DESCRIBE_LOG_DIRS, log_dirs())
case("no partitions", ApiKey.DESCRIBE_LOG_DIRS, log_dirs(("three", [])))
case("unknown", ApiKey.DESCRIBE_LOG_DIRS, log_dirs(("missing", [0]), ("three", [9, -1, 0])))
case("repeated", ApiKey.DESCRIBE_LOG_DIRS, log_dirs(("three", [0, 0]), ("three", [0, 1])))


# -- ListConfigResources -------------------------------------------------------------------------------------------


def config_resources(*kinds: int) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        request = lcr.ListConfigResourcesRequest(resource_types=list(kinds) if version else [])
        answer = peer.call(ApiKey.LIST_CONFIG_RESOURCES, version, request)
        return [answer.error_code, sorted((row.resource_type, row.resource_name) for row in answer.config_resources)]

    return ask


for kinds in [(), (TOPIC,), (BROKER,), (BROKER_LOGGER,), (CLIENT_METRICS,), (GROUP,), (TOPIC, BROKER), (TOPIC, TOPIC)]:
    case(f"kinds {kinds}", ApiKey.LIST_CONFIG_RESOURCES, config_resources(*kinds))
for kind in (0, 1, 99):
    case(f"unknown kind {kind}", ApiKey.LIST_CONFIG_RESOURCES, config_resources(TOPIC, kind))


# -- UpdateFeatures ------------------------------------------------------------------------------------------------


def features(*updates: tuple[str, int, int], validate_only: bool = True) -> CaseFunction:
    """The last number is 1 for an upgrade, 2 and 3 for a safe and an unsafe downgrade."""

    def ask(peer: Peer, version: int) -> Any:
        rows = [
            uf.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            if version
            else uf.FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind > 1)
            for name, level, kind in updates
        ]
        request = uf.UpdateFeaturesRequest(feature_updates=rows, validate_only=validate_only and version > 0)
        return peer.call(ApiKey.UPDATE_FEATURES, version, request)

    return ask


for label, updates in {
    "same": [("transaction.version", 2, 1)],
    "same as a downgrade": [("transaction.version", 2, 2)],
    "too high": [("transaction.version", 9, 1)],
    "negative": [("transaction.version", -1, 1)],
    "downgrade not allowed": [("transaction.version", 1, 1)],
    "to zero not allowed": [("transaction.version", 0, 1)],
    "higher by downgrade": [("transaction.version", 3, 2)],
    "unknown feature": [("nonsense", 1, 1)],
    "unknown feature to zero": [("nonsense", 0, 2)],
    "empty name": [("", 1, 1)],
    "good and bad": [("transaction.version", 2, 1), ("nonsense", 1, 1)],
    "none": [],
}.items():
    case(label, ApiKey.UPDATE_FEATURES, features(*updates))
for label, updates in {
    "downgrade": [("transaction.version", 1, 2)],
    "unsafe downgrade": [("transaction.version", 0, 3)],
    "unknown upgrade type": [("transaction.version", 2, 0)],
    "other upgrade type": [("transaction.version", 2, 7)],
}.items():
    case(label, ApiKey.UPDATE_FEATURES, features(*updates), since=1)


# -- ElectLeaders --------------------------------------------------------------------------------------------------


def electing(kind: int, *wanted: tuple[str, list[int]], everything: bool = False) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        topics = [el.TopicPartitions(topic=name, partitions=indexes) for name, indexes in wanted]
        request = el.ElectLeadersRequest(
            election_type=kind, topic_partitions=None if everything else topics, timeout_ms=10_000
        )
        if version == 0:
            request.election_type = 0
        return peer.call(ApiKey.ELECT_LEADERS, version, request)

    return ask


for kind in (0, 1):
    case(f"type {kind}", ApiKey.ELECT_LEADERS, electing(kind, ("three", [0, 1])), since=kind)
    case(f"type {kind}, all", ApiKey.ELECT_LEADERS, electing(kind, everything=True), since=kind)
    case(f"type {kind}, unknown", ApiKey.ELECT_LEADERS, electing(kind, ("missing", [0]), ("three", [9])), since=kind)
case("none", ApiKey.ELECT_LEADERS, electing(0))
case("no partitions", ApiKey.ELECT_LEADERS, electing(0, ("three", [])))
case("unknown type", ApiKey.ELECT_LEADERS, electing(7, ("three", [0])), since=1)
case("partition repeated", ApiKey.ELECT_LEADERS, electing(0, ("three", [0, 0])))


# -- Reassignments -------------------------------------------------------------------------------------------------


def reassigning(*wanted: tuple[str, int, list[int] | None], may_change_factor: bool = True) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        topics: dict[str, apr.ReassignableTopic] = {}
        for name, index, replicas in wanted:
            topic = topics.setdefault(name, apr.ReassignableTopic(name=name))
            topic.partitions.append(apr.ReassignablePartition(partition_index=index, replicas=replicas))
        request = apr.AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=list(topics.values()))
        if version:
            request.allow_replication_factor_change = may_change_factor
        return peer.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)

    return ask


for label, moves in {
    "where it is": [("three", 0, [1])],
    "to an unknown broker": [("three", 0, [2])],
    "to another one too": [("three", 0, [1, 2])],
    "to nobody": [("three", 0, [])],
    "twice to one": [("three", 0, [1, 1])],
    "cancel": [("three", 0, None)],
    "unknown partition": [("three", 9, [1]), ("three", 0, [1])],
    "unknown topic": [("missing", 0, [1])],
    "cancel the unknown": [("missing", 0, None)],
    "none": [],
}.items():
    case(label, ApiKey.ALTER_PARTITION_REASSIGNMENTS, reassigning(*moves))
    case(f"{label}, with this many", ApiKey.ALTER_PARTITION_REASSIGNMENTS, reassigning(*moves, may_change_factor=False))


def reassignments(*wanted: tuple[str, list[int]], everything: bool = False) -> CaseFunction:
    def ask(peer: Peer, version: int) -> Any:
        topics = [lpr.ListPartitionReassignmentsTopics(name=name, partition_indexes=each) for name, each in wanted]
        request = lpr.ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None if everything else topics)
        return peer.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, version, request)

    return ask


case("all", ApiKey.LIST_PARTITION_REASSIGNMENTS, reassignments(everything=True))
case("named", ApiKey.LIST_PARTITION_REASSIGNMENTS, reassignments(("three", [0, 9]), ("missing", [0])))
case("none", ApiKey.LIST_PARTITION_REASSIGNMENTS, reassignments())


# -- AlterReplicaLogDirs -------------------------------------------------------------------------------------------


def moving(path: str, *wanted: tuple[str, list[int]]) -> CaseFunction:
    """`{here}` is the broker's own directory."""

    def ask(peer: Peer, version: int) -> Any:
        every = peer.call(ApiKey.DESCRIBE_LOG_DIRS, 4, dld.DescribeLogDirsRequest(topics=None))
        here = every.results[0].log_dir
        topics = [arl.AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in wanted]
        directory = arl.AlterReplicaLogDir(path=path.format(here=here), topics=topics)
        return peer.call(ApiKey.ALTER_REPLICA_LOG_DIRS, version, arl.AlterReplicaLogDirsRequest(dirs=[directory]))

    return ask


case("where it is", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("{here}", ("three", [0, 1])))
case("unknown directory", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("/nowhere", ("three", [0])))
case("relative directory", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("nowhere", ("three", [0])))
case("unknown partition", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("{here}", ("three", [9])))
case("unknown topic", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("{here}", ("missing", [0])))
case("long name", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("{here}", ("x" * 249, [0])))
case("none", ApiKey.ALTER_REPLICA_LOG_DIRS, moving("{here}"))


@pytest.mark.parametrize("each", CASES.parameters())
def test_answers_say_the_same(peers: Peers, each: Case) -> None:
    # On a busy machine Kafka's broker can be behind its controller for longer than `settled` looks.
    for _ in range(2):
        try:
            return each.check(peers)
        except AssertionError:
            time.sleep(1)
    return each.check(peers)
