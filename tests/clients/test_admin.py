"""The administration client against both brokers: what both serve, and how it says what one does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import confluent_kafka
import pytest

import penstock.aio
from penstock import (
    Admin,
    AlterConfigOp,
    Producer,
    TopicAlreadyExists,
    TopicPartition,
    UnknownTopicOrPartition,
    UnsupportedByBroker,
)
from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.admin import (
    AbortTransaction,
    AclBinding,
    AclOperation,
    AdminErrors,
    AsyncAdmin,
    ConfigResource,
    ConfigSource,
    ConfigType,
    GroupState,
    GroupType,
    InvalidInput,
    IsolationLevel,
    NewTopic,
    OffsetSpec,
    QuotaEntity,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    TransactionState,
    abort_of,
)
from penstock.client.core.types import OffsetAndMetadata
from tests.clients.checker import wait_until
from tests.clients.support import TopicMaker

TIMEOUT_S = 60.0


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap, default_api_timeout_ms=60_000) as client:
        yield client


def wait_for(condition: Callable[[], Any]) -> Any:
    """What takes the broker a moment, looked at until it is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
    return found


def produce(bootstrap: str, topic: str, values: list[bytes], *, partition: int = 0, timestamp: int = 0) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for index, value in enumerate(values):
        producer.produce(topic, value, partition=partition, timestamp=(timestamp + index) if timestamp else 0)
    assert producer.flush(TIMEOUT_S) == 0


# Topics.


def test_a_topic_is_created_described_listed_and_deleted(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    created = admin.create_topics(
        [NewTopic(name=name, num_partitions=3, replication_factor=1, configs={"retention.ms": "1000"})]
    )[name]
    assert (created.name, created.num_partitions, created.replication_factor) == (name, 3, 1)
    assert created.configs["retention.ms"].value == "1000"
    assert created.configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG

    listed = wait_for(lambda: admin.list_topics().get(name))
    assert (listed.topic_id, listed.is_internal) == (created.topic_id, False)

    described = admin.describe_topics([name], include_authorized_operations=True)[name]
    assert (described.name, described.topic_id, described.replication_factor) == (name, created.topic_id, 1)
    assert [each.partition for each in described.partitions] == [0, 1, 2]
    first = described.partitions[0]
    assert first.leader == first.replicas[0] == first.isr[0]
    assert not first.is_under_replicated
    assert first.offline == ()
    assert described.authorized_operations is not None
    assert AclOperation.READ in described.authorized_operations

    by_id = admin.describe_topics([created.topic_id])[created.topic_id]
    assert (by_id.name, len(by_id.partitions)) == (name, 3)

    assert admin.delete_topics([name]) == {name: None}
    wait_for(lambda: name not in admin.list_topics())


def test_a_topic_is_deleted_by_its_id(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    topic_id = admin.create_topics([name])[name].topic_id
    assert admin.delete_topics([topic_id]) == {topic_id: None}
    wait_for(lambda: name not in admin.list_topics())


def test_replicas_may_be_assigned_by_hand(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    broker = admin.describe_cluster().nodes[0].id
    admin.create_topics([NewTopic(name=name, assignments={0: [broker], 1: [broker]})])
    wait_for(lambda: name in admin.list_topics())
    described = admin.describe_topics([name])[name]
    assert [each.replicas for each in described.partitions] == [(broker,), (broker,)]


def test_validate_only_creates_nothing(admin: Admin, topic: TopicMaker) -> None:
    name = topic.name()
    assert admin.create_topics([NewTopic(name=name, num_partitions=2)], validate_only=True)[name].num_partitions == 2
    assert name not in admin.list_topics()


def test_one_failure_is_raised_as_itself_and_names_the_topic(admin: Admin, topic: TopicMaker) -> None:
    name = topic()
    with pytest.raises(TopicAlreadyExists, match=name):
        admin.create_topics([name])
    with pytest.raises(UnknownTopicOrPartition, match="topic no-such: the topic or partition does not exist"):
        admin.describe_topics(["no-such"])
    with pytest.raises(UnknownTopicOrPartition, match="no-such"):
        admin.delete_topics(["no-such"])
    with pytest.raises(KafkaError, match="00000000-0000-0000-0000-00000000002a"):
        admin.describe_topics([UUID(int=42)])


def test_some_failures_keep_the_successes(admin: Admin, topic: TopicMaker) -> None:
    there, new = topic(), topic.name()
    with pytest.raises(AdminErrors, match="1 of 2 failed: topic") as caught:
        admin.create_topics([there, new])
    assert set(caught.value.failures) == {there}
    assert isinstance(caught.value.failures[there], TopicAlreadyExists)
    assert caught.value.successes[new].name == new
    with pytest.raises(AdminErrors, match="2 of 2 failed"):
        admin.create_topics([there, "a/b"])


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 99}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
        ({"assignments": {0: [77]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_the_broker_refuses_has_its_code(
    admin: Admin, topic: TopicMaker, new: dict[str, Any], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as caught:
        admin.create_topics([NewTopic(name=topic.name(), **new)])
    assert caught.value.code is code


def test_topics_come_page_by_page(admin: Admin, topic: TopicMaker) -> None:
    names = [topic(partitions=3), topic(partitions=2), topic(partitions=4)]
    described = admin.describe_topics(names, page_size=2)
    assert [len(described[name].partitions) for name in names] == [3, 2, 4]
    for each in described.values():
        assert [it.partition for it in each.partitions] == list(range(len(each.partitions)))


# Configurations.


def test_a_topics_configuration_is_described(admin: Admin, topic: TopicMaker) -> None:
    resource = ConfigResource.topic(topic(config={"cleanup.policy": "compact"}))
    found = admin.describe_configs([resource], include_synonyms=True, include_documentation=True)[resource]
    assert len(found) > 20
    policy = found["cleanup.policy"]
    assert (policy.value, policy.source, policy.type) == (
        "compact", ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigType.LIST,
    )  # fmt: skip
    assert policy.documentation
    assert [each.value for each in policy.synonyms] == ["compact", "delete"]
    assert not policy.is_default
    assert found["segment.bytes"].is_default
    assert set(admin.describe_configs([resource], keys=["retention.ms"])[resource]) == {"retention.ms"}


def test_a_brokers_configuration_is_asked_of_that_broker(admin: Admin) -> None:
    node = admin.describe_cluster().nodes[0]
    resource = ConfigResource.broker(node.id)
    found = admin.describe_configs([resource, ConfigResource.broker()])
    assert found[resource]["log.segment.bytes"].value == "1073741824"
    assert found[ConfigResource.broker()] == {} or "log.segment.bytes" not in found[ConfigResource.broker()]


def test_configurations_of_what_does_not_exist(admin: Admin, topic: TopicMaker) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="topic no-such"):
        admin.describe_configs([ConfigResource.topic("no-such")])
    there = ConfigResource.topic(topic())
    with pytest.raises(AdminErrors, match="broker 99 is not in the cluster: its brokers are") as caught:
        admin.describe_configs([there, ConfigResource.broker(99)])
    assert set(caught.value.successes) == {there}


# The cluster.


def test_the_cluster_is_described(admin: Admin, bootstrap: str) -> None:
    found = admin.describe_cluster(include_authorized_operations=True)
    assert found.cluster_id
    assert [f"{each.host}:{each.port}" for each in found.nodes] == [bootstrap]
    assert found.controller in found.nodes
    assert found.authorized_operations is not None
    assert AclOperation.CREATE in found.authorized_operations
    assert admin.describe_cluster().authorized_operations is None


def test_the_apis_of_a_broker(admin: Admin) -> None:
    node = admin.describe_cluster().nodes[0]
    apis = admin.describe_api_versions(node.id)
    assert apis["Metadata"].usable == 13
    assert apis["Fetch"].lowest == 4
    with pytest.raises(KafkaError, match="broker 99 is not in the cluster"):
        admin.describe_api_versions(99)


def test_features_are_described(admin: Admin) -> None:
    found = admin.describe_features()
    assert "transaction.version" in found.finalized
    assert found.supported["transaction.version"].highest >= found.finalized["transaction.version"].highest


# Offsets.


def test_offsets_by_kind_and_time(admin: Admin, topic: TopicMaker, bootstrap: str) -> None:
    name = topic(partitions=2)
    produce(bootstrap, name, [b"a", b"b", b"c"], timestamp=1_700_000_000_000)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)

    def offset(spec: OffsetSpec, tp: TopicPartition = first) -> tuple[int, int]:
        found = admin.list_offsets({tp: spec}, isolation_level=IsolationLevel.READ_COMMITTED)[tp]
        return found.offset, found.timestamp

    assert offset(OffsetSpec.EARLIEST) == (0, -1)
    assert offset(OffsetSpec.LATEST) == (3, -1)
    assert offset(OffsetSpec.LATEST, second) == (0, -1)
    assert offset(OffsetSpec.MAX_TIMESTAMP) == (2, 1_700_000_000_002)
    assert offset(OffsetSpec.at(1_700_000_000_001)) == (1, 1_700_000_000_001)
    assert offset(OffsetSpec.at(1_900_000_000_000)) == (-1, -1)
    assert offset(OffsetSpec.EARLIEST_LOCAL)[0] == 0
    both = admin.list_offsets({first: OffsetSpec.LATEST, second: OffsetSpec.MAX_TIMESTAMP})
    assert [both[first].offset, both[second].offset] == [3, -1]


def test_offsets_of_what_does_not_exist_fail_soon(admin: Admin, topic: TopicMaker) -> None:
    name = topic()
    started = time.monotonic()
    with pytest.raises(AdminErrors, match="2 of 3 failed") as caught:
        admin.list_offsets(
            {
                TopicPartition(name, 0): OffsetSpec.LATEST,
                TopicPartition(name, 9): OffsetSpec.LATEST,
                TopicPartition("no-such", 0): OffsetSpec.LATEST,
            }
        )
    assert time.monotonic() - started < TIMEOUT_S / 2, "not at the call's time-out"
    assert all(each.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in caught.value.failures.values())
    assert caught.value.successes[TopicPartition(name, 0)].offset == 0


# Groups.


@pytest.fixture
def member(bootstrap: str, topic: TopicMaker) -> Iterator[tuple[str, str, confluent_kafka.Consumer]]:
    """(group, topic, its one member), which has its partitions."""
    name = topic(partitions=2)
    group = f"group-{name}"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "reader", "enable.auto.commit": False}
    )
    consumer.subscribe([name])

    def polled() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_for(polled)
    yield group, name, consumer
    consumer.close()


def test_a_group_with_a_member(admin: Admin, member: tuple[str, str, confluent_kafka.Consumer]) -> None:
    group, name, _ = member
    listed = admin.list_groups(states=["stable"], types=[GroupType.CLASSIC])[group]
    assert (listed.state, listed.type, listed.protocol_type) == (GroupState.STABLE, GroupType.CLASSIC, "consumer")
    assert group not in admin.list_groups(states=[GroupState.EMPTY])
    assert group not in admin.list_groups(protocol_types=["connect"])

    described = admin.describe_groups([group], include_authorized_operations=True)[group]
    assert (described.state, described.type, described.assignor) == (GroupState.STABLE, GroupType.CLASSIC, "range")
    assert described.coordinator in admin.describe_cluster().nodes
    assert described.authorized_operations is not None
    assert AclOperation.DELETE in described.authorized_operations
    (reader,) = described.members
    assert (reader.client_id, reader.group_instance_id, reader.subscription) == ("reader", None, (name,))
    assert reader.assignment == (TopicPartition(name, 0), TopicPartition(name, 1))

    with pytest.raises(KafkaError, match=f"group {group}: the group has members") as caught:
        admin.delete_groups([group])
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError, match="members subscribe to the topic"):
        admin.delete_group_offsets(group, [TopicPartition(name, 0)])


def test_members_are_removed(admin: Admin, member: tuple[str, str, confluent_kafka.Consumer]) -> None:
    group = member[0]
    removed = admin.remove_group_members(group, reason="maintenance")
    assert len(removed) == 1
    with pytest.raises(KafkaError, match="member nobody of group"):
        admin.remove_group_members(group, ["nobody"])


def test_committed_offsets_are_altered_listed_and_deleted(admin: Admin, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    group, first, second = f"group-{name}", TopicPartition(name, 0), TopicPartition(name, 1)
    assert admin.list_group_offsets([group]) == {group: {}}
    altered = admin.alter_group_offsets(group, {first: 5, second: OffsetAndMetadata(7, "by hand", 0)})
    assert altered == {first: None, second: None}
    assert admin.list_group_offsets([group]) == {
        group: {first: OffsetAndMetadata(5), second: OffsetAndMetadata(7, "by hand", 0)}
    }
    other = TopicPartition(name, 8)
    assert admin.list_group_offsets({group: [first, other]}, require_stable=True) == {
        group: {first: OffsetAndMetadata(5), other: None}
    }
    assert admin.describe_groups([group])[group].is_simple
    assert admin.list_groups()[group].is_simple
    assert admin.delete_group_offsets(group, [first]) == {first: None}
    assert admin.list_group_offsets([group]) == {group: {second: OffsetAndMetadata(7, "by hand", 0)}}
    assert admin.delete_groups([group]) == {group: None}
    with pytest.raises(KafkaError, match=f"group {group}: ") as caught:
        admin.describe_groups([group])
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_that_do_not_exist(admin: Admin, topic: TopicMaker) -> None:
    group = f"group-{topic.name()}"
    with pytest.raises(KafkaError) as caught:
        admin.delete_groups([group])
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(AdminErrors, match="2 of 2 failed"):
        admin.describe_groups([group, group + "-2"])
    name = topic.name()
    with pytest.raises(KafkaError):
        admin.alter_group_offsets(group, {TopicPartition(name, 0): 1})


# Transactions.


@pytest.fixture
def open_transaction(bootstrap: str, topic: TopicMaker) -> Iterator[tuple[str, str]]:
    """(transactional id, topic) of a transaction with one record, which nobody ends."""
    name = topic()
    transactional_id = f"tx-{name}"
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(name, b"open")
    assert producer.flush(TIMEOUT_S) == 0
    yield transactional_id, name
    # The transaction may have been ended behind its producer's back.
    try:
        producer.abort_transaction(TIMEOUT_S)
    except confluent_kafka.KafkaException:
        pass


def test_an_open_transaction_is_seen_from_both_sides(admin: Admin, open_transaction: tuple[str, str]) -> None:
    transactional_id, name = open_transaction
    tp = TopicPartition(name, 0)
    listed = admin.list_transactions(states=["ongoing"])[transactional_id]
    assert listed.state is TransactionState.ONGOING
    described = admin.describe_transactions([transactional_id])[transactional_id]
    assert (described.state, described.timeout_ms) == (TransactionState.ONGOING, 60_000)
    assert described.partitions == {tp}
    assert described.start_time_ms is not None
    assert transactional_id not in admin.list_transactions(producer_ids=[listed.producer_id + 100_000])

    (producer,) = admin.describe_producers([tp])[tp]
    assert (producer.producer_id, producer.transaction_start_offset) == (listed.producer_id, 0)
    assert admin.describe_producers([tp], broker=listed.coordinator)[tp] == (producer,)
    # Its coordinator knows it, so it does not hang.
    assert admin.find_hanging_transactions(topic=name, max_transaction_timeout_ms=0) == ()


def test_producers_are_fenced(admin: Admin, open_transaction: tuple[str, str]) -> None:
    transactional_id, _ = open_transaction
    before = admin.describe_transactions([transactional_id])[transactional_id]
    fenced = admin.fence_producers([transactional_id])[transactional_id]
    assert (fenced.producer_id, fenced.producer_epoch) > (before.producer_id, before.producer_epoch)
    after = admin.describe_transactions([transactional_id])[transactional_id]
    assert after.partitions == frozenset()


def test_a_transaction_is_aborted_past_its_coordinator(
    admin: Admin, open_transaction: tuple[str, str], bootstrap: str
) -> None:
    tp = TopicPartition(open_transaction[1], 0)
    producers = admin.describe_producers([tp])[tp]
    spec = abort_of(tp, producers, 0)
    assert spec.producer_id == producers[0].producer_id
    admin.abort_transaction(spec)
    assert admin.describe_producers([tp])[tp][0].transaction_start_offset is None
    with pytest.raises(InvalidInput, match=r"no transaction of .* is open that began at offset 0"):
        abort_of(tp, admin.describe_producers([tp])[tp], 0)


def test_transactions_that_do_not_exist(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="transactional id no-such") as caught:
        admin.describe_transactions(["no-such"])
    assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    with pytest.raises(UnknownTopicOrPartition):
        admin.describe_producers([TopicPartition("no-such", 0)])
    with pytest.raises(UnknownTopicOrPartition):
        admin.abort_transaction(
            AbortTransaction(partition=TopicPartition("no-such", 0), producer_id=1, producer_epoch=0)
        )
    with pytest.raises(UnknownTopicOrPartition, match="topic no-such cannot be looked at"):
        admin.find_hanging_transactions(topic="no-such")


# Changes on a running broker.


def test_partitions_are_added(admin: Admin, topic: TopicMaker) -> None:
    name = topic(partitions=1)
    admin.create_partitions({name: 3})
    wait_for(lambda: len(admin.describe_topics([name])[name].partitions) == 3)
    with pytest.raises(KafkaError, match=name) as caught:
        admin.create_partitions({name: 2})
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS


def test_settings_of_a_topic_are_changed_and_taken_back(admin: Admin, topic: TopicMaker) -> None:
    name = topic()
    resource = ConfigResource.topic(name)

    def segment_ms() -> str | None:
        return admin.describe_configs([resource])[resource]["segment.ms"].value

    before = segment_ms()
    admin.incremental_alter_configs({resource: {"segment.ms": "1234567"}})
    wait_for(lambda: segment_ms() == "1234567")
    admin.incremental_alter_configs({resource: [AlterConfigOp.delete("segment.ms")]})
    wait_for(lambda: segment_ms() == before)
    with pytest.raises(KafkaError) as caught:
        admin.incremental_alter_configs({resource: {"segment.ms": "soon"}})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_records_are_deleted_up_to_an_offset(admin: Admin, bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(5):
            producer.send(tp.topic, b"%d" % number)
    admin.delete_records({tp: 3})
    assert admin.list_offsets({tp: OffsetSpec.EARLIEST})[tp].offset == 3
    with pytest.raises(KafkaError) as caught:
        admin.delete_records({tp: 99})
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_log_directories_tell_of_their_partitions(admin: Admin, topic: TopicMaker) -> None:
    name = topic(partitions=2)

    def found() -> set[int]:
        return {
            replica.partition
            for directories in admin.describe_log_dirs().values()
            for directory in directories.values()
            for replica in directory.replicas
            if replica.topic == name
        }

    # Kafka's metadata may be a moment ahead of its log.
    wait_until(lambda: found() == {0, 1}, 10, "both partitions have a directory")


# What a broker does not serve.

BROKER_CALLS: dict[str, Callable[[Admin], object]] = {
    "DescribeClientQuotas": lambda admin: admin.describe_client_quotas(),
    "AlterClientQuotas": lambda admin: admin.alter_client_quotas({QuotaEntity.of(user="a"): {"x": 1.0}}),
    "DescribeUserScramCredentials": lambda admin: admin.describe_user_scram_credentials(),
    "AlterUserScramCredentials": lambda admin: admin.alter_user_scram_credentials(
        [ScramDeletion(user="a", mechanism=ScramMechanism.SCRAM_SHA_256)]
    ),
    "DescribeAcls": lambda admin: admin.describe_acls(),
    "CreateAcls": lambda admin: admin.create_acls(
        [
            AclBinding(
                resource_type=ResourceType.TOPIC, resource_name="t", principal="User:a", operation=AclOperation.READ
            )
        ]
    ),
}


@pytest.mark.parametrize("api", BROKER_CALLS)
@pytest.mark.parametrize("cluster_kind", ["penstock"])
def test_an_api_that_the_broker_lacks_is_named(admin: Admin, api: str) -> None:
    with pytest.raises(UnsupportedByBroker, match=f"does not serve {api}"):
        BROKER_CALLS[api](admin)


# The two faces.


async def test_the_asyncio_face(bootstrap: str, topic: TopicMaker) -> None:
    async with penstock.aio.Admin(bootstrap_servers=bootstrap) as admin:
        assert isinstance(admin, AsyncAdmin)
        name = topic()
        assert (await admin.describe_topics([name]))[name].name == name
    with pytest.raises(penstock.ClientClosed):
        await admin.list_topics()


def test_the_futures(admin: Admin, topic: TopicMaker) -> None:
    names = [topic.name() for _ in range(5)]
    futures = [admin.submit.create_topics([name]) for name in names]
    assert all(isinstance(each, Future) for each in futures)
    assert [next(iter(each.result(TIMEOUT_S))) for each in futures] == names
    with pytest.raises(TopicAlreadyExists):
        admin.submit.create_topics([names[0]]).result(TIMEOUT_S)


def test_nobody_at_the_address_is_a_time_out_within_the_time() -> None:
    started = time.monotonic()
    with (
        Admin(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=800) as admin,
        pytest.raises(penstock.KafkaTimeout, match=r"127\.0\.0\.1:1"),
    ):
        admin.list_topics()
    assert time.monotonic() - started < 30


def test_use_after_close() -> None:
    admin = Admin(bootstrap_servers="127.0.0.1:1")
    admin.close()
    with pytest.raises(penstock.ClientClosed):
        admin.list_topics()
    with pytest.raises(penstock.ClientClosed):
        admin.submit.list_topics()
