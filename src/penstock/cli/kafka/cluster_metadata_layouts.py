"""Records of `__cluster_metadata`, the log of Apache Kafka's controllers (KRaft), as Kafka 4.3 writes them.

They are only shown here: our controller has a log of its own. Fields stand in wire order; all versions are flexible.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.schema import Message, message, wire


@message
class EndpointLayout(Message):
    name: str = wire("string", default="")
    host: str = wire("string", default="")
    port: int = wire("uint16", default=0)
    security_protocol: int = wire("int16", default=0)


@message
class SupportedFeatureLayout(Message):
    name: str = wire("string", default="")
    min_supported_version: int = wire("int16", default=0)
    max_supported_version: int = wire("int16", default=0)


@message
class RegisterBrokerLayout(Message):
    """Version 3 adds directories (KIP-858), 4 the cordoned ones (KIP-1066)."""

    broker_id: int = wire("int32", default=0)
    is_migrating_zk_broker: bool = wire("bool", "2-", default=False)
    incarnation_id: UUID = wire("uuid", default=ZERO_UUID)
    broker_epoch: int = wire("int64", default=0)
    end_points: list[EndpointLayout] = wire("[]EndpointLayout", factory=list)
    features: list[SupportedFeatureLayout] = wire("[]SupportedFeatureLayout", factory=list)
    rack: str | None = wire("string", nullable="0-", default="")
    fenced: bool = wire("bool", default=True)
    in_controlled_shutdown: bool = wire("bool", "1-", default=False)
    log_dirs: list[UUID] = wire("[]uuid", "3-", tag=0, factory=list)
    cordoned_log_dirs: list[UUID] | None = wire("[]uuid", "4-", nullable="4-", tag=1, default=None)


@message
class UnregisterBrokerLayout(Message):
    broker_id: int = wire("int32", default=0)
    broker_epoch: int = wire("int64", default=0)


@message
class TopicLayout(Message):
    name: str = wire("string", default="")
    topic_id: UUID = wire("uuid", default=ZERO_UUID)


@message
class PartitionLayout(Message):
    """Version 1 adds directories (KIP-858), 2 eligible leader replicas (KIP-966)."""

    partition_id: int = wire("int32", default=-1)
    topic_id: UUID = wire("uuid", default=ZERO_UUID)
    replicas: list[int] = wire("[]int32", factory=list)
    isr: list[int] = wire("[]int32", factory=list)
    removing_replicas: list[int] = wire("[]int32", factory=list)
    adding_replicas: list[int] = wire("[]int32", factory=list)
    leader: int = wire("int32", default=-1)
    leader_recovery_state: int = wire("int8", tag=0, default=0)
    leader_epoch: int = wire("int32", default=-1)
    partition_epoch: int = wire("int32", default=-1)
    directories: list[UUID] = wire("[]uuid", "1-", factory=list)
    eligible_leader_replicas: list[int] | None = wire("[]int32", "2-", nullable="2-", tag=1, default=None)
    last_known_elr: list[int] | None = wire("[]int32", "2-", nullable="2-", tag=2, default=None)


@message
class ConfigLayout(Message):
    resource_type: int = wire("int8", default=0)
    resource_name: str = wire("string", default="")
    name: str = wire("string", default="")
    value: str | None = wire("string", nullable="0-", default="")


@message
class PartitionChangeLayout(Message):
    """Versions as of `PartitionLayout`; what did not change is not there."""

    partition_id: int = wire("int32", default=-1)
    topic_id: UUID = wire("uuid", default=ZERO_UUID)
    isr: list[int] | None = wire("[]int32", nullable="0-", tag=0, default=None)
    leader: int = wire("int32", tag=1, default=-2)
    replicas: list[int] | None = wire("[]int32", nullable="0-", tag=2, default=None)
    removing_replicas: list[int] | None = wire("[]int32", nullable="0-", tag=3, default=None)
    adding_replicas: list[int] | None = wire("[]int32", nullable="0-", tag=4, default=None)
    leader_recovery_state: int = wire("int8", tag=5, default=-1)
    directories: list[UUID] | None = wire("[]uuid", "1-", nullable="1-", tag=8, default=None)
    eligible_leader_replicas: list[int] | None = wire("[]int32", "2-", nullable="2-", tag=6, default=None)
    last_known_elr: list[int] | None = wire("[]int32", "2-", nullable="2-", tag=7, default=None)


@message
class BrokerFenceLayout(Message):
    """A broker that is fenced, and one that no longer is."""

    id: int = wire("int32", default=0)
    epoch: int = wire("int64", default=0)


@message
class RemoveTopicLayout(Message):
    topic_id: UUID = wire("uuid", default=ZERO_UUID)


@message
class DelegationTokenLayout(Message):
    owner: str = wire("string", default="")
    requester: str = wire("string", default="")
    renewers: list[str] = wire("[]string", factory=list)
    issue_timestamp: int = wire("int64", default=0)
    max_timestamp: int = wire("int64", default=0)
    expiration_timestamp: int = wire("int64", default=0)
    token_id: str = wire("string", default="")


@message
class UserScramCredentialLayout(Message):
    name: str = wire("string", default="")
    mechanism: int = wire("int8", default=0)
    salt: bytes = wire("bytes", default=b"")
    stored_key: bytes = wire("bytes", default=b"")
    server_key: bytes = wire("bytes", default=b"")
    iterations: int = wire("int32", default=0)


@message
class FeatureLevelLayout(Message):
    name: str = wire("string", default="")
    feature_level: int = wire("int16", default=0)


@message
class QuotaEntityLayout(Message):
    entity_type: str = wire("string", default="")
    entity_name: str | None = wire("string", nullable="0-", default="")


@message
class ClientQuotaLayout(Message):
    entity: list[QuotaEntityLayout] = wire("[]QuotaEntityLayout", factory=list)
    key: str = wire("string", default="")
    value: float = wire("float64", default=0.0)
    remove: bool = wire("bool", default=False)


@message
class ProducerIdsLayout(Message):
    broker_id: int = wire("int32", default=0)
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64", default=0)


@message
class BrokerRegistrationChangeLayout(Message):
    """Version 1 adds the shutdown, 2 directories (KIP-858), 3 the cordoned ones (KIP-1066)."""

    broker_id: int = wire("int32", default=0)
    broker_epoch: int = wire("int64", default=0)
    fenced: int = wire("int8", tag=0, default=0)
    in_controlled_shutdown: int = wire("int8", "1-", tag=1, default=0)
    log_dirs: list[UUID] = wire("[]uuid", "2-", tag=2, factory=list)
    cordoned_log_dirs: list[UUID] | None = wire("[]uuid", "3-", nullable="3-", tag=3, default=None)


@message
class AccessControlEntryLayout(Message):
    id: UUID = wire("uuid", default=ZERO_UUID)
    resource_type: int = wire("int8", default=0)
    resource_name: str = wire("string", default="")
    pattern_type: int = wire("int8", default=0)
    principal: str = wire("string", default="")
    host: str = wire("string", default="")
    operation: int = wire("int8", default=0)
    permission_type: int = wire("int8", default=0)


@message
class RemoveAccessControlEntryLayout(Message):
    id: UUID = wire("uuid", default=ZERO_UUID)


@message
class EmptyLayout(Message):
    """A record that says all by its kind."""


@message
class ZkMigrationStateLayout(Message):
    zk_migration_state: int = wire("int8", default=0)


@message
class RemoveUserScramCredentialLayout(Message):
    name: str = wire("string", default="")
    mechanism: int = wire("int8", default=0)


@message
class BeginTransactionLayout(Message):
    name: str | None = wire("string", nullable="0-", tag=0, default=None)


@message
class AbortTransactionLayout(Message):
    reason: str | None = wire("string", nullable="0-", tag=0, default=None)


@message
class RemoveDelegationTokenLayout(Message):
    token_id: str = wire("string", default="")


@message
class RegisterControllerLayout(Message):
    controller_id: int = wire("int32", default=0)
    incarnation_id: UUID = wire("uuid", default=ZERO_UUID)
    zk_migration_ready: bool = wire("bool", default=False)
    end_points: list[EndpointLayout] = wire("[]EndpointLayout", factory=list)
    features: list[SupportedFeatureLayout] = wire("[]SupportedFeatureLayout", factory=list)


@message
class ClearElrLayout(Message):
    topic_name: str = wire("string", default="")


class MetadataKind(NamedTuple):
    """What Kafka calls a kind of record, and the layout of its versions from 0 on."""

    name: str
    layout: type[Message]
    version_max: int = 0


KINDS: Final = {
    0: MetadataKind("REGISTER_BROKER_RECORD", RegisterBrokerLayout, 4),
    1: MetadataKind("UNREGISTER_BROKER_RECORD", UnregisterBrokerLayout),
    2: MetadataKind("TOPIC_RECORD", TopicLayout),
    3: MetadataKind("PARTITION_RECORD", PartitionLayout, 2),
    4: MetadataKind("CONFIG_RECORD", ConfigLayout),
    5: MetadataKind("PARTITION_CHANGE_RECORD", PartitionChangeLayout, 2),
    7: MetadataKind("FENCE_BROKER_RECORD", BrokerFenceLayout),
    8: MetadataKind("UNFENCE_BROKER_RECORD", BrokerFenceLayout),
    9: MetadataKind("REMOVE_TOPIC_RECORD", RemoveTopicLayout),
    10: MetadataKind("DELEGATION_TOKEN_RECORD", DelegationTokenLayout),
    11: MetadataKind("USER_SCRAM_CREDENTIAL_RECORD", UserScramCredentialLayout),
    12: MetadataKind("FEATURE_LEVEL_RECORD", FeatureLevelLayout),
    14: MetadataKind("CLIENT_QUOTA_RECORD", ClientQuotaLayout),
    15: MetadataKind("PRODUCER_IDS_RECORD", ProducerIdsLayout),
    17: MetadataKind("BROKER_REGISTRATION_CHANGE_RECORD", BrokerRegistrationChangeLayout, 3),
    18: MetadataKind("ACCESS_CONTROL_ENTRY_RECORD", AccessControlEntryLayout),
    19: MetadataKind("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", RemoveAccessControlEntryLayout),
    20: MetadataKind("NO_OP_RECORD", EmptyLayout),
    21: MetadataKind("ZK_MIGRATION_STATE_RECORD", ZkMigrationStateLayout),
    22: MetadataKind("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", RemoveUserScramCredentialLayout),
    23: MetadataKind("BEGIN_TRANSACTION_RECORD", BeginTransactionLayout),
    24: MetadataKind("END_TRANSACTION_RECORD", EmptyLayout),
    25: MetadataKind("ABORT_TRANSACTION_RECORD", AbortTransactionLayout),
    26: MetadataKind("REMOVE_DELEGATION_TOKEN_RECORD", RemoveDelegationTokenLayout),
    27: MetadataKind("REGISTER_CONTROLLER_RECORD", RegisterControllerLayout),
    28: MetadataKind("CLEAR_ELR_RECORD", ClearElrLayout),
}
"""By the number that a record begins with."""
