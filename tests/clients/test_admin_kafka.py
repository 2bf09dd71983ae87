"""The administration client against two Kafka brokers with an authorizer: what Penstock does not serve yet.

Two brokers, because most of it is about where something is: leaders, replicas, log directories, coordinators.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from penstock import Admin, TopicPartition, UnknownTopicOrPartition
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import uuid_to_text
from penstock.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AdminErrors,
    AlterConfigKind,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ElectionType,
    FeatureUpdate,
    FeatureUpgrade,
    GroupState,
    GroupType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PatternType,
    QuotaEntity,
    QuotaFilter,
    QuotaMatch,
    ResourceType,
    ScramCredential,
    ScramCredentialInfo,
    ScramDeletion,
    ScramMechanism,
    TopicPartitionReplica,
    abort_of,
)
from penstock.client.core.client import ClientCore
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.clients.support import TopicMaker, core_config
from tests.support.brokers import KafkaBroker

TIMEOUT_S = 60.0
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Pair(NamedTuple):
    bootstrap: str
    first: KafkaBroker
    second: KafkaBroker
    directories: tuple[str, str]
    """The first broker's."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    base = tmp_path_factory.mktemp("pair")
    shared = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "offsets.topic.num.partitions": "4",
        "controller.quota.window.num": "2",
        "transaction.partition.verification.enable": "false",
    }
    first = KafkaBroker(base / "first", shared)
    directories = (str(base / "first" / "data"), str(base / "first" / "more"))
    first.overrides["log.dirs"] = ",".join(directories)
    second = KafkaBroker(base / "second", shared)
    second.overrides |= {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
        "listeners": f"PLAINTEXT://{second.bootstrap}",
    }
    try:
        first.start()
        second.start()
        with Admin(bootstrap_servers=first.bootstrap) as admin:
            wait_for(lambda: len(admin.describe_cluster().nodes) == 2)
        yield Pair(first.bootstrap, first, second, directories)
    finally:
        second.kill()
        first.kill()


@pytest.fixture
def bootstrap(pair: Pair) -> str:
    return pair.bootstrap


@pytest.fixture
def admin(pair: Pair) -> Iterator[Admin]:
    with Admin(bootstrap_servers=pair.bootstrap, default_api_timeout_ms=60_000) as client:
        yield client


@pytest.fixture
def spread(admin: Admin, topic: TopicMaker) -> str:
    """A topic whose partition 0 is on broker 1 and partition 1 on broker 2."""
    name = topic.name()
    admin.create_topics([NewTopic(name=name, assignments={0: [1], 1: [2]})])
    wait_for(lambda: ready(admin, name))
    return name


def ready(admin: Admin, name: str) -> bool:
    found = admin.list_topics()
    return name in found and all(each.leader for each in admin.describe_topics([name])[name].partitions)


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
    return found


def produce(bootstrap: str, topic: str, count: int, partition: int, size: int = 10) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


# Leaders.


def test_records_are_deleted_at_their_leaders(admin: Admin, spread: str, bootstrap: str) -> None:
    first, second = TopicPartition(spread, 0), TopicPartition(spread, 1)
    produce(bootstrap, spread, 5, 0)
    produce(bootstrap, spread, 5, 1)
    assert admin.delete_records({first: 3, second: -1}) == {first: 3, second: 5}
    found = admin.list_offsets({first: OffsetSpec.EARLIEST, second: OffsetSpec.EARLIEST})
    assert (found[first].offset, found[second].offset) == (3, 5)
    with pytest.raises(KafkaError) as caught:
        admin.delete_records({first: 99})
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(AdminErrors) as several:
        admin.delete_records({first: 4, TopicPartition(spread, 7): 0})
    assert several.value.successes == {first: 4}


def test_partitions_are_added(admin: Admin, spread: str) -> None:
    assert admin.create_partitions({spread: 3}, validate_only=True) == {spread: None}
    assert admin.create_partitions({spread: NewPartitions(total_count=4, assignments=[[2], [1]])}) == {spread: None}
    wait_for(lambda: len(admin.describe_topics([spread])[spread].partitions) == 4)
    assert admin.describe_topics([spread])[spread].partitions[3].replicas == (1,)
    with pytest.raises(KafkaError, match=spread) as caught:
        admin.create_partitions({spread: 2})
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(UnknownTopicOrPartition):
        admin.create_partitions({"no-such": 2})


# Configurations.


def test_configurations_are_changed_step_by_step(admin: Admin, spread: str) -> None:
    resource = ConfigResource.topic(spread)

    def value(key: str) -> str | None:
        return admin.describe_configs([resource], keys=[key])[resource][key].value

    admin.incremental_alter_configs({resource: {"retention.ms": "1000"}}, validate_only=True)
    assert value("retention.ms") == "604800000"
    admin.incremental_alter_configs({resource: {"retention.ms": "1000", "cleanup.policy": "delete"}})
    wait_for(lambda: value("retention.ms") == "1000")
    append = AlterConfigOp(name="cleanup.policy", value="compact", op=AlterConfigKind.APPEND)
    admin.incremental_alter_configs({resource: [append, AlterConfigOp.delete("retention.ms")]})
    wait_for(lambda: (value("cleanup.policy"), value("retention.ms")) == ("delete,compact", "604800000"))
    subtract = AlterConfigOp(name="cleanup.policy", value="delete", op=AlterConfigKind.SUBTRACT)
    admin.incremental_alter_configs({resource: [subtract]})
    wait_for(lambda: value("cleanup.policy") == "compact")
    admin.alter_configs({resource: {"segment.ms": "60000"}})
    wait_for(lambda: (value("cleanup.policy"), value("segment.ms")) == ("delete", "60000"))
    with pytest.raises(KafkaError, match=f"topic {spread}") as caught:
        admin.incremental_alter_configs({resource: {"retention.ms": "soon"}})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_configurations_of_brokers(admin: Admin) -> None:
    one, all_of_them = ConfigResource.broker(2), ConfigResource.broker()
    admin.incremental_alter_configs({one: {"log.cleaner.threads": "2"}, all_of_them: {"message.max.bytes": "2000000"}})
    try:
        found = wait_for(
            lambda: (entry := admin.describe_configs([one])[one]["log.cleaner.threads"]).value == "2" and entry
        )
        assert found.source is ConfigSource.DYNAMIC_BROKER_CONFIG
        assert admin.describe_configs([all_of_them])[all_of_them]["message.max.bytes"].value == "2000000"
        assert ConfigResource.broker(2) in admin.list_config_resources([ConfigResourceType.BROKER])
    finally:
        admin.incremental_alter_configs({one: {"log.cleaner.threads": None}, all_of_them: {"message.max.bytes": None}})
    loggers = admin.describe_configs([ConfigResource.broker_logger(1)])[ConfigResource.broker_logger(1)]
    assert "root" in loggers


def test_configurations_of_groups(admin: Admin, topic: TopicMaker) -> None:
    group = ConfigResource.group(topic.name())
    admin.incremental_alter_configs({group: {"consumer.session.timeout.ms": "46000"}})
    wait_for(lambda: group in admin.list_config_resources(["group"]))  # type: ignore[list-item]
    entry = admin.describe_configs([group])[group]["consumer.session.timeout.ms"]
    assert (entry.value, entry.source) == ("46000", ConfigSource.DYNAMIC_GROUP_CONFIG)


# Replicas.


def test_log_directories(admin: Admin, pair: Pair, spread: str) -> None:
    produce(pair.bootstrap, spread, 10, 0, size=100)
    found = admin.describe_log_dirs()
    assert set(found) == {1, 2}
    assert set(found[1]) == set(pair.directories)
    for each in found[1].values():
        assert each.error is None
        assert each.total_bytes is not None
        assert each.usable_bytes is not None
        assert 0 < each.usable_bytes <= each.total_bytes
    tp = TopicPartition(spread, 0)
    (info,) = (each.replicas[tp] for each in found[1].values() if tp in each.replicas)
    assert (info.size > 100, info.offset_lag, info.is_future) == (True, 0, False)
    only = admin.describe_log_dirs([2], partitions=[TopicPartition(spread, 1)])
    assert [list(each.replicas) for each in only[2].values()] == [[TopicPartition(spread, 1)]]
    with pytest.raises(AdminErrors, match="broker 9 is not in the cluster"):
        admin.describe_log_dirs([1, 9])


def test_a_replica_is_moved_to_another_directory(admin: Admin, pair: Pair, spread: str) -> None:
    replica = TopicPartitionReplica(spread, 0, 1)
    before = admin.describe_replica_log_dirs([replica])[replica]
    (target,) = (each for each in pair.directories if each != before.current)
    assert admin.alter_replica_log_dirs({replica: target}) == {replica: None}
    wait_for(lambda: admin.describe_replica_log_dirs([replica])[replica].current == target)
    with pytest.raises(KafkaError, match=f"{spread}-0 on broker 1") as caught:
        admin.alter_replica_log_dirs({replica: "/no/such/directory"})
    assert caught.value.code is ErrorCode.LOG_DIR_NOT_FOUND
    missing = TopicPartitionReplica(spread, 1, 1)
    assert admin.describe_replica_log_dirs([missing])[missing].current is None


def test_partitions_are_reassigned(admin: Admin, pair: Pair, spread: str) -> None:
    tp = TopicPartition(spread, 0)
    produce(pair.bootstrap, spread, 20, 0, size=50_000)
    # A throttle, so that the move can be watched.
    throttle = {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}
    nodes = [ConfigResource.broker(1), ConfigResource.broker(2)]
    admin.incremental_alter_configs(
        {
            ConfigResource.topic(spread): {
                "leader.replication.throttled.replicas": "*",
                "follower.replication.throttled.replicas": "*",
            },
            **dict.fromkeys(nodes, throttle),
        }
    )
    try:
        assert admin.alter_partition_reassignments({tp: [2]}) == {tp: None}
        moving = wait_for(admin.list_partition_reassignments)[tp]
        assert (set(moving.replicas), moving.adding, moving.removing) == ({1, 2}, (2,), (1,))
        assert admin.list_partition_reassignments([tp]) == {tp: moving}
        assert admin.list_partition_reassignments([TopicPartition(spread, 1)]) == {}
        admin.alter_partition_reassignments({tp: None})
        wait_for(lambda: not admin.list_partition_reassignments())
    finally:
        admin.incremental_alter_configs(dict.fromkeys(nodes, dict.fromkeys(throttle)))
    admin.alter_partition_reassignments({tp: [2]})
    wait_for(lambda: admin.describe_topics([spread])[spread].partitions[0].replicas == (2,))
    with pytest.raises(KafkaError, match=str(tp)) as caught:
        admin.alter_partition_reassignments({tp: None})
    assert caught.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    with pytest.raises(KafkaError) as wrong:
        admin.alter_partition_reassignments({tp: [1, 2]}, allow_replication_factor_change=False)
    assert wrong.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as unknown:
        admin.alter_partition_reassignments({tp: [9]})
    assert unknown.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_preferred_leader_is_elected(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    tp = TopicPartition(name, 0)
    admin.create_topics([NewTopic(name=name, assignments={0: [1, 2]})])
    wait_for(lambda: ready(admin, name) and len(admin.describe_topics([name])[name].partitions[0].isr) == 2)
    assert not admin.elect_leaders("preferred", [tp])[tp].was_needed
    # The other order of the same replicas: the leader stays until an election.
    admin.alter_partition_reassignments({tp: [2, 1]})
    wait_for(lambda: admin.describe_topics([name])[name].partitions[0].replicas == (2, 1))
    admin.elect_leaders(ElectionType.PREFERRED, [tp])
    wait_for(lambda: admin.describe_topics([name])[name].partitions[0].leader == 2)
    assert not admin.elect_leaders(ElectionType.UNCLEAN, [tp])[tp].was_needed
    assert isinstance(admin.elect_leaders(), dict)
    with pytest.raises(UnknownTopicOrPartition, match="no-such-0"):
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("no-such", 0)])


# Groups.


def test_groups_of_all_coordinators(admin: Admin, spread: str) -> None:
    groups = [f"{spread}-{number}" for number in range(8)]
    for group in groups:
        admin.alter_group_offsets(group, {TopicPartition(spread, 0): 1})
    assert set(groups) <= set(admin.list_groups())
    described = admin.describe_groups(groups)
    assert {each.coordinator.id for each in described.values()} == {1, 2}
    assert all(len(each) == 1 for each in admin.list_group_offsets(groups).values())
    assert admin.delete_groups(groups) == dict.fromkeys(groups)


def test_a_group_of_the_new_protocol(admin: Admin, spread: str, bootstrap: str) -> None:
    group = f"new-{spread}"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "client.id": "reader"}
    )
    consumer.subscribe([spread])

    def polled() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) == 2

    try:
        wait_for(polled)
        described = admin.describe_groups([group], include_authorized_operations=True)[group]
        assert described.type is GroupType.CONSUMER
        assert described.state in (GroupState.STABLE, GroupState.RECONCILING)
        assert (described.group_epoch is not None, described.assignor) == (True, "uniform")
        (reader,) = described.members
        assert (reader.client_id, reader.subscription, reader.is_upgraded) == ("reader", (spread,), True)
        assert reader.target_assignment == (TopicPartition(spread, 0), TopicPartition(spread, 1))
        assert admin.list_groups(types=["consumer"])[group].type is GroupType.CONSUMER
    finally:
        consumer.close()


# Hanging transactions.


async def write_hanging(bootstrap: str, tp: TopicPartition, leader: int) -> None:
    """A record of a transaction that no coordinator knows, which the broker lets pass (it does not verify)."""
    batch = build_batch(
        [Record(1000, b"k", b"v", ())], producer_id=4711, producer_epoch=3, base_sequence=0, transactional=True
    )
    data = TopicProduceData(name=tp.topic, partition_data=[PartitionProduceData(index=tp.partition, records=batch)])
    request = ProduceRequest(transactional_id="lost", acks=-1, timeout_ms=10_000, topic_data=[data])
    core = ClientCore(core_config(bootstrap))
    await core.start()
    try:
        await core.metadata.update()
        answer = await core.send(leader, ApiKey.PRODUCE, request, timeout_ms=10_000, at_most=11)
        assert answer.responses[0].partition_responses[0].error_code == 0
    finally:
        await core.close()


def test_a_hanging_transaction_is_found_and_aborted(admin: Admin, spread: str, bootstrap: str) -> None:
    tp = TopicPartition(spread, 1)
    asyncio.run(write_hanging(bootstrap, tp, 2))
    assert admin.find_hanging_transactions(topic=spread, partition=0) == ()
    assert admin.find_hanging_transactions(broker=1) == ()
    (found,) = admin.find_hanging_transactions(broker=2)
    assert admin.find_hanging_transactions(topic=spread, partition=1)[0].partition == found.partition == tp
    assert (found.producer_id, found.producer_epoch, found.start_offset) == (4711, 3, 0)
    before = admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level="read_committed")
    assert before[tp].offset == 0
    admin.abort_transaction(abort_of(tp, admin.describe_producers([tp])[tp], found.start_offset))
    after = admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level="read_committed")
    assert after[tp].offset == 2
    assert admin.find_hanging_transactions(topic=spread) == ()


# Security and quotas.


def test_access_rules(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    read = AclBinding(
        resource_type=ResourceType.TOPIC, resource_name=name, principal="User:ann", operation=AclOperation.READ
    )
    deny = AclBinding(
        resource_type=ResourceType.GROUP,
        resource_name=name,
        pattern_type=PatternType.PREFIXED,
        principal="User:bob",
        operation=AclOperation.ALL,
        permission=AclPermission.DENY,
        host="10.0.0.1",
    )
    assert admin.create_acls([read, deny]) == {read: None, deny: None}
    of_name = AclFilter(resource_name=name)
    assert set(wait_for(lambda: admin.describe_acls(of_name))) == {read, deny}
    assert admin.describe_acls(AclFilter.of(deny)) == (deny,)
    matching = AclFilter(resource_type=ResourceType.GROUP, resource_name=name + "-x", pattern_type=PatternType.MATCH)
    assert admin.describe_acls(matching) == (deny,)
    assert {read, deny} <= set(admin.describe_acls())
    nothing = AclFilter(principal="User:nobody")
    deleted = admin.delete_acls([AclFilter.of(read), nothing])
    assert deleted[AclFilter.of(read)].deleted == (read,)
    assert deleted[nothing].deleted == ()
    assert admin.delete_acls([of_name])[of_name].deleted == (deny,)
    wait_for(lambda: admin.describe_acls(of_name) == ())
    with pytest.raises(KafkaError, match="ACL 'allow User:ann"):
        admin.create_acls(
            [
                AclBinding(
                    resource_type=ResourceType.CLUSTER,
                    resource_name="not-the-cluster",
                    principal="User:ann",
                    operation=AclOperation.ALTER,
                )
            ]
        )


def test_quotas(admin: Admin) -> None:
    ann, default = QuotaEntity.of(user="ann"), QuotaEntity.of(user=None, client_id="app")
    assert str(default) == "user <default>, client-id app"
    admin.alter_client_quotas({ann: {"producer_byte_rate": 1000.0}}, validate_only=True)
    assert admin.describe_client_quotas(QuotaFilter.of(user="ann")) == {}
    admin.alter_client_quotas(
        {ann: {"producer_byte_rate": 1000.0, "request_percentage": 50}, default: {"consumer_byte_rate": 2000.0}}
    )
    found = wait_for(lambda: admin.describe_client_quotas(QuotaFilter.of(user="ann")))
    assert found == {ann: {"producer_byte_rate": 1000.0, "request_percentage": 50.0}}
    assert set(admin.describe_client_quotas()) == {ann, default}
    assert set(admin.describe_client_quotas(QuotaFilter.of(user=QuotaMatch.ANY, strict=True))) == {ann}
    assert set(admin.describe_client_quotas(QuotaFilter.of(user=None))) == {default}
    admin.alter_client_quotas(
        {ann: {"producer_byte_rate": None, "request_percentage": None}, default: {"consumer_byte_rate": None}}
    )
    wait_for(lambda: admin.describe_client_quotas() == {})
    with pytest.raises(KafkaError, match="the quota of user ann"):
        admin.alter_client_quotas({ann: {"no_such_quota": 1}})


def test_scram_credentials(admin: Admin) -> None:
    admin.alter_user_scram_credentials(
        [
            ScramCredential(user="ann", password="secret", mechanism=ScramMechanism.SCRAM_SHA_256),
            ScramCredential(user="bob", password=b"geheim", mechanism=ScramMechanism.SCRAM_SHA_512, iterations=8192),
        ]
    )
    found = wait_for(lambda: len(all_of_them := admin.describe_user_scram_credentials()) == 2 and all_of_them)
    assert found["ann"] == (ScramCredentialInfo(mechanism=ScramMechanism.SCRAM_SHA_256, iterations=4096),)
    assert found["bob"][0].iterations == 8192
    with pytest.raises(KafkaError, match="user nobody") as caught:
        admin.describe_user_scram_credentials(["nobody"])
    assert caught.value.code is ErrorCode.RESOURCE_NOT_FOUND
    admin.alter_user_scram_credentials([ScramDeletion(user="bob", mechanism=ScramMechanism.SCRAM_SHA_512)])
    wait_for(lambda: set(admin.describe_user_scram_credentials()) == {"ann"})
    with pytest.raises(AdminErrors) as several:
        admin.alter_user_scram_credentials(
            [
                ScramDeletion(user="bob", mechanism=ScramMechanism.SCRAM_SHA_512),
                ScramDeletion(user="ann", mechanism=ScramMechanism.SCRAM_SHA_256),
            ]
        )
    assert set(several.value.failures) == {"bob"}


# Features.


def test_features_are_updated(admin: Admin) -> None:
    before = admin.describe_features()
    level = before.finalized["transaction.version"].highest
    assert admin.update_features({"transaction.version": level}, validate_only=True) == {"transaction.version": None}
    down = FeatureUpdate(level=level - 1, upgrade=FeatureUpgrade.SAFE_DOWNGRADE)
    admin.update_features({"transaction.version": down})
    wait_for(lambda: admin.describe_features().finalized["transaction.version"].highest == level - 1)
    admin.update_features({"transaction.version": level})
    after = wait_for(
        lambda: (found := admin.describe_features()).finalized["transaction.version"].highest == level and found
    )
    assert after.epoch > before.epoch
    with pytest.raises(KafkaError):
        admin.update_features({"no.such.feature": 1})
    with pytest.raises(KafkaError):
        admin.update_features({"transaction.version": 99})


def test_fenced_brokers_are_told_apart(admin: Admin) -> None:
    found = admin.describe_cluster(include_fenced_brokers=True)
    assert [each.id for each in found.nodes] == [1, 2]
    assert found.fenced == frozenset()


def refusal(admin: Admin, new: NewTopic) -> ErrorCode:
    try:
        admin.create_topics([new], retry_on_quota_violation=False)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_changes_beyond_a_quota_wait(admin: Admin, topic: TopicMaker) -> None:
    entity, name = QuotaEntity.of(user=None), topic.name()
    admin.alter_client_quotas({entity: {"controller_mutation_rate": 4.0}})
    try:
        wait_for(
            lambda: refusal(admin, NewTopic(name=topic.name(), num_partitions=8)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        )
        assert admin.create_topics([NewTopic(name=name, num_partitions=4)])[name].num_partitions == 4
        wait_for(lambda: admin.delete_topics([name]) == {name: None})
    finally:
        admin.alter_client_quotas({entity: {"controller_mutation_rate": None}})


def test_topic_ids_are_those_on_disk(admin: Admin, spread: str, pair: Pair) -> None:
    places = [Path(each) / f"{spread}-0" / "partition.metadata" for each in pair.directories]
    written = wait_for(lambda: "".join(each.read_text() for each in places if each.exists()))
    assert uuid_to_text(admin.list_topics()[spread].topic_id) in written
