"""What makes no sense is told by a sentence before anything is sent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from penstock.client.admin import (
    AbortTransaction,
    AclBinding,
    AclOperation,
    AclPermission,
    Admin,
    AlterConfigOp,
    AsyncAdmin,
    ConfigResource,
    FeatureUpdate,
    InvalidInput,
    NewTopic,
    OffsetSpec,
    PatternType,
    QuotaEntity,
    QuotaFilter,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    Submit,
    TopicPartitionReplica,
)
from penstock.client.core.types import OffsetAndMetadata, TopicPartition

TP = TopicPartition("t", 0)
TOPIC = ConfigResource.topic("t")
ACL = {"resource_type": ResourceType.TOPIC, "resource_name": "t", "operation": AclOperation.READ}

CASES: list[tuple[Callable[[Any], Awaitable[Any]], str]] = [
    (lambda it: it.create_topics([]), "the list of topics is empty"),
    (lambda it: it.create_topics(None), "a list of topics is wanted, not NoneType"),
    (lambda it: it.create_topics({"t": 1}), "a list of topics is wanted, not dict"),
    (lambda it: it.create_topics([7]), "a topic to create is given as NewTopic, not int 7"),
    (lambda it: it.create_topics([""]), "topics: a name is empty"),
    (lambda it: it.create_topics([NewTopic(name="t"), NewTopic(name="t", num_partitions=2)]), "created twice"),
    (lambda it: it.create_topics([NewTopic(name="t", num_partitions="3")]), "num_partitions of topic t is a whole"),  # type: ignore[arg-type]
    (lambda it: it.create_topics([NewTopic(name="t", replication_factor=40000)]), "must be from -1 to 32767"),
    (lambda it: it.create_topics([NewTopic(name="t", num_partitions=1, assignments={0: [1]})]), "give no numbers too"),
    (lambda it: it.delete_topics([]), "the list of topics is empty"),
    (lambda it: it.delete_topics([b"t"]), "topics are named by text, not by bytes"),
    (lambda it: it.delete_topics([UUID(int=0)]), "the id of no topic is zero"),
    (lambda it: it.describe_topics([]), "the list of topics is empty"),
    (lambda it: it.describe_topics(["t"], page_size=0), "page_size is 0: it must be from 1"),
    (lambda it: it.create_partitions({}), "the mapping of topics is empty"),
    (lambda it: it.create_partitions({"t": 0}), "the number of partitions of topic t is 0"),
    (lambda it: it.create_partitions({"t": "4"}), "the number of partitions of topic t is given as NewPartitions"),
    (lambda it: it.list_offsets({}), "the mapping of offsets by partition is empty"),
    (lambda it: it.list_offsets({TP: -1}), "the offset that is wanted of t-0 is given as OffsetSpec"),
    (lambda it: it.list_offsets({"t": OffsetSpec.LATEST}), "a partition is a pair of topic and number"),
    (lambda it: it.list_offsets({("t", -1): OffsetSpec.LATEST}), "the partition of topic t is -1"),
    (lambda it: it.list_offsets({TP: OffsetSpec.LATEST}, isolation_level="x"), "the isolation level is one of read"),
    (lambda it: it.delete_records({TP: -2}), "the offset of t-0 is -2: it must be from -1"),
    (lambda it: it.delete_records({TP: True}), "the offset of t-0 is a whole number, not bool"),
    (lambda it: it.describe_configs([]), "the list of resources is empty"),
    (lambda it: it.describe_configs(["t"]), "a resource is given as ConfigResource"),
    (lambda it: it.describe_configs([ConfigResource.topic("")]), "a topic has a name that is empty"),
    (lambda it: it.describe_configs([ConfigResource(TOPIC.type.BROKER, "one")]), "brokers are named by their ids"),
    (lambda it: it.incremental_alter_configs({TOPIC: {}}), "the list of changes of topic t is empty"),
    (lambda it: it.incremental_alter_configs({TOPIC: [("a", "b")]}), "a change of topic t is given as AlterConfigOp"),
    (lambda it: it.incremental_alter_configs({TOPIC: [AlterConfigOp(name="a")]}), "use AlterConfigOp.delete"),
    (lambda it: it.alter_configs({TOPIC: ["a"]}), "the configuration of topic t is a mapping"),
    (lambda it: it.list_config_resources(["tpoic"]), "a type of resources is one of"),
    (lambda it: it.describe_groups([]), "the list of groups is empty"),
    (lambda it: it.describe_groups([1]), "groups are named by text, not by int"),
    (lambda it: it.list_groups(states=["fine"]), "a state of groups is one of unknown, preparing_rebalance"),
    (lambda it: it.list_groups(types=["fine"]), "a type of groups is one of"),
    (lambda it: it.delete_groups([""]), "groups: a name is empty"),
    (lambda it: it.remove_group_members("g", []), "is empty: name at least one"),
    (lambda it: it.list_group_offsets({"g": []}), "the list of partitions is empty"),
    (lambda it: it.alter_group_offsets("g", {TP: "5"}), "the offset of t-0 is a number or OffsetAndMetadata"),
    (lambda it: it.alter_group_offsets("g", {TP: OffsetAndMetadata(-1)}), "the offset of t-0 is -1"),
    (lambda it: it.alter_group_offsets("", {TP: 1}), "groups: a name is empty"),
    (lambda it: it.delete_group_offsets("g", []), "the list of partitions is empty"),
    (lambda it: it.describe_log_dirs([-1]), "brokers is -1"),
    (lambda it: it.describe_log_dirs(["a"]), "brokers is a whole number"),
    (lambda it: it.describe_replica_log_dirs([TP]), "a replica is TopicPartitionReplica"),
    (lambda it: it.alter_replica_log_dirs({TopicPartitionReplica("t", 0, 1): ""}), "directories: a name is empty"),
    (lambda it: it.alter_partition_reassignments({TP: []}), "the list of brokers of t-0 is empty"),
    (lambda it: it.elect_leaders("any"), "the kind of election is one of preferred, unclean"),
    (lambda it: it.elect_leaders("preferred", []), "the list of partitions is empty"),
    (lambda it: it.list_transactions(states=["x"]), "a state of transactions is one of"),
    (lambda it: it.list_transactions(producer_ids=["x"]), "a producer id is a whole number"),
    (lambda it: it.describe_transactions([]), "the list of transactional ids is empty"),
    (lambda it: it.fence_producers([None]), "transactional ids are named by text"),
    (lambda it: it.describe_producers([]), "the list of partitions is empty"),
    (lambda it: it.abort_transaction(TP), "a transaction to abort is given as AbortTransaction"),
    (lambda it: it.abort_transaction(AbortTransaction(partition=TP, producer_id=1, producer_epoch=99999)), "32767"),
    (lambda it: it.find_hanging_transactions(), "on a broker, or in a topic: name one of them"),
    (lambda it: it.find_hanging_transactions(broker=1, partition=1), "partition 1 of which topic"),
    (lambda it: it.create_acls([]), "the list of ACLs is empty"),
    (lambda it: it.create_acls([AclBinding(principal="ann", **ACL)]), "as in User:ann"),
    (lambda it: it.create_acls([AclBinding(principal="User:a", pattern_type=PatternType.MATCH, **ACL)]), "literal or"),
    (lambda it: it.create_acls([AclBinding(principal="User:a", permission=AclPermission.ANY, **ACL)]), "filters only"),
    (lambda it: it.describe_acls("all"), "a filter of ACLs is given as AclFilter"),
    (lambda it: it.delete_acls([None]), "a filter of ACLs is given as AclFilter"),
    (lambda it: it.alter_client_quotas({}), "the mapping of quotas by entity is empty"),
    (lambda it: it.alter_client_quotas({"ann": {"a": 1}}), "whose quota it is is given as QuotaEntity"),
    (lambda it: it.alter_client_quotas({QuotaEntity.of(user="a"): {"a": "1"}}), "is a number or None, not str"),
    (lambda it: it.describe_client_quotas("ann"), "a filter of quotas is given as QuotaFilter"),
    (lambda it: it.describe_user_scram_credentials([]), "the list of users is empty"),
    (lambda it: it.alter_user_scram_credentials([]), "the list of credentials is empty"),
    (lambda it: it.alter_user_scram_credentials(["ann"]), "a credential is given as ScramCredential"),
    (lambda it: it.alter_user_scram_credentials([ScramCredential(user="a", password="")]), "password of user a is"),
    (lambda it: it.alter_user_scram_credentials([ScramCredential(user="a", password="p", iterations=1)]), "from 4096"),
    (
        lambda it: it.alter_user_scram_credentials(
            [ScramCredential(user="a", password="p", mechanism=ScramMechanism.UNKNOWN)]
        ),
        "SCRAM-SHA-256 or SCRAM-SHA-512",
    ),
    (lambda it: it.update_features({}), "the mapping of levels by feature is empty"),
    (lambda it: it.update_features({"f": "1"}), "the level of feature f is given as FeatureUpdate"),
    (lambda it: it.update_features({"f": FeatureUpdate(level=0)}), "is a downgrade: say which"),
    (lambda it: it.describe_api_versions("1"), "the broker is a whole number"),
]


@pytest.mark.parametrize(("call", "says"), CASES, ids=[str(number) for number in range(len(CASES))])
async def test_a_sentence_says_what_is_wrong(call: Callable[[Any], Awaitable[Any]], says: str) -> None:
    # Nobody is at the address: a call that went that far would not end with InvalidInput.
    async with AsyncAdmin(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=1) as admin:
        with pytest.raises(InvalidInput, match=re.escape(says)):
            await call(admin)


def test_values_refuse_what_makes_no_sense() -> None:
    with pytest.raises(InvalidInput, match="quotas are of user, client-id, ip, not of topic"):
        QuotaEntity.of(topic="t")
    with pytest.raises(InvalidInput, match="a quota is somebody's"):
        QuotaEntity.of()
    with pytest.raises(InvalidInput, match="not of topic"):
        QuotaFilter.of(topic="t")
    with pytest.raises(InvalidInput, match="has no zone"):
        OffsetSpec.at(datetime(2024, 1, 1))
    with pytest.raises(InvalidInput, match="a timestamp in milliseconds is -5"):
        OffsetSpec.at(-5)
    assert OffsetSpec.at(datetime(2024, 1, 1, tzinfo=UTC)) == OffsetSpec(1_704_067_200_000)


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(ScramCredential(user="a", password="geheim", salt=b"geheim"))


def test_the_three_faces_have_the_same_methods_with_documentation() -> None:
    def methods(kind: type) -> dict[str, Any]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}

    shared = methods(Submit)
    assert len(shared) > 35
    assert shared.keys() == methods(Admin).keys() - {"metrics"}
    assert shared.keys() == methods(AsyncAdmin).keys() - {"metrics", "start", "close", "perform"}
    for name, method in shared.items():
        assert method.__doc__, name
        assert "timeout_ms" in inspect.signature(method).parameters, name
