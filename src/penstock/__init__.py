"""Penstock: a Kafka-compatible streaming platform for Python.

The blocking clients and their values are here (`from penstock import Producer`), the asyncio ones under the same names
in `penstock.aio`. Each is imported when it is first used, so `import penstock` costs nothing; the `.pyi` files beside
this one and `aio.py` tell type checkers the same names.
"""

from __future__ import annotations

__version__ = "0.1.0"

_CLIENTS = {
    "penstock.client.admin.blocking": "Admin",
    "penstock.client.consumer.blocking": "Consumer",
    "penstock.client.consumer.parallel.blocking": "ParallelConsumer",
    "penstock.client.consumer.streams.blocking": "MessageStream MessageStreams",
    "penstock.client.producer.blocking": "Producer",
}
_ADMIN = "penstock.client.admin."
_CONSUMER = "penstock.client.consumer."
_VALUES = {
    "penstock.base.config.declaration": "ConfigErrors Problem",
    "penstock.base.errors": "ErrorCode",
    "penstock.base.types": "TopicPartition",
    "penstock.client.config.config": "ClientConfig DescribedKey",
    "penstock.client.config.options": "AdminOptions ConsumerOptions ProducerOptions",
    "penstock.client.core.types": (
        "ClusterSnapshot ConsumerGroupMetadata Node OffsetAndMetadata PartitionInfo RecordMetadata TopicInfo"
    ),
    "penstock.client.errors": (
        "ArrowMissing AuthenticationFailed AuthorizationFailed BufferFull ClientClosed ClientError "
        "ClusterAuthorizationFailed CommitFailed ConcurrentUse CoordinatorNotAvailable FencedInstance ForkedClient "
        "GroupAuthorizationFailed InvalidState InvalidTopic KafkaError KafkaTimeout LogTruncated "
        "MaxPollIntervalExceeded NoBrokersReachable NoOffsetForPartition OffsetOutOfRange OutOfOrderSequence "
        "ProducerFenced RebalanceInProgress RecordTooLarge SerializationError TopicAlreadyExists "
        "TopicAuthorizationFailed TransactionAborted TransactionError TransactionalIdAuthorizationFailed "
        "UnknownTopicOrPartition UnsupportedByBroker WakeUp"
    ),
    "penstock.network.errors": "ProtocolViolation UnsupportedMechanism WrongSecurityProtocol",
    "penstock.client.producer.delivery": "BatchDelivery BatchMetadata Delivery",
    "penstock.client.producer.interceptors": "ProducerInterceptor",
    "penstock.client.producer.record": "ProducerRecord",
    "penstock.records.record": "ConsumerRecord",
    _CONSUMER + "assignors.base": "Assignment AssignorBase MemberSubscription RebalanceProtocol",
    _CONSUMER + "assignors.range": "RangeAssignor",
    _CONSUMER + "assignors.round_robin": "RoundRobinAssignor",
    _CONSUMER + "assignors.sticky": "CooperativeStickyAssignor StickyAssignor",
    _CONSUMER + "fetching.list_offsets": "OffsetAndTimestamp",
    _CONSUMER + "interceptors": "ConsumerInterceptor",
    _CONSUMER + "listener": "RebalanceListener",
    _CONSUMER + "offset_stores.base": "OffsetStore copy_offsets offsets_after",
    _CONSUMER + "offset_stores.dbapi": "DbApiOffsetStore",
    _CONSUMER + "offset_stores.kafka": "KafkaOffsetStore",
    _CONSUMER + "offset_stores.zookeeper": "ZooKeeperOffsetStore",
    _CONSUMER + "parallel.policy": "HandlerFailed",
    _CONSUMER + "records": "ConsumerRecords",
    _ADMIN + "acls": "AclBinding AclFilter DeletedAcls",
    _ADMIN + "cluster": "ApiRange ClusterDescription FeatureMetadata FeatureRange FeatureUpdate",
    _ADMIN + "config_values": "AlterConfigOp ConfigEntry ConfigResource ConfigSynonym",
    _ADMIN + "enums": (
        "AclOperation AclPermission AlterConfigKind ConfigResourceType ConfigSource ConfigType ElectionType "
        "FeatureUpgrade GroupState GroupType IsolationLevel PatternType ResourceType ScramMechanism TransactionState"
    ),
    _ADMIN + "errors": "AdminErrors InvalidInput",
    _ADMIN + "group_descriptions": "GroupDescription MemberDescription",
    _ADMIN + "groups": "GroupListing",
    _ADMIN + "hanging": "HangingTransaction",
    _ADMIN + "log_dirs": "LogDirDescription ReplicaInfo ReplicaLogDir TopicPartitionReplica",
    _ADMIN + "offsets": "ListedOffset OffsetSpec",
    _ADMIN + "producers": "AbortTransaction ProducerState abort_of",
    _ADMIN + "quotas": "QuotaEntity QuotaFilter QuotaMatch",
    _ADMIN + "reassignments": "Election PartitionReassignment",
    _ADMIN + "topic_descriptions": "PartitionDescription TopicDescription TopicListing",
    _ADMIN + "topics": "CreatedTopic NewPartitions NewTopic",
    _ADMIN + "transactions": "FencedProducer TransactionDescription TransactionListing",
    _ADMIN + "users": "ScramCredential ScramCredentialInfo ScramDeletion",
}
_MODULES = {name: module for module, names in {**_CLIENTS, **_VALUES}.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULES)]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
