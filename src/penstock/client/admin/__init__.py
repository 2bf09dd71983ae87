"""The administration client: topics, configurations, groups, replicas, transactions, security, features.

`admin.AsyncAdmin` is the asyncio client and `blocking.Admin` the blocking one (`penstock.aio.Admin`, `penstock.Admin`).
Their methods are functions in the modules of their nouns, beside the values that they take and give; `asking` knows
whom to ask, `checks` what makes no sense, `errors` how failures of one thing and of many are told.

It knows nothing of producing and consuming.
"""

from penstock.client.admin.acls import AclBinding, AclFilter, DeletedAcls
from penstock.client.admin.admin import AsyncAdmin
from penstock.client.admin.blocking import Admin, Submit
from penstock.client.admin.cluster import (
    ApiRange,
    ClusterDescription,
    FeatureMetadata,
    FeatureRange,
    FeatureUpdate,
)
from penstock.client.admin.config_values import AlterConfigOp, ConfigEntry, ConfigResource, ConfigSynonym
from penstock.client.admin.enums import (
    AclOperation,
    AclPermission,
    AlterConfigKind,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    ElectionType,
    FeatureUpgrade,
    GroupState,
    GroupType,
    IsolationLevel,
    PatternType,
    ResourceType,
    ScramMechanism,
    TransactionState,
)
from penstock.client.admin.errors import AdminErrors, InvalidInput
from penstock.client.admin.group_descriptions import GroupDescription, MemberDescription
from penstock.client.admin.groups import GroupListing
from penstock.client.admin.hanging import HangingTransaction
from penstock.client.admin.log_dirs import LogDirDescription, ReplicaInfo, ReplicaLogDir, TopicPartitionReplica
from penstock.client.admin.offsets import ListedOffset, OffsetSpec
from penstock.client.admin.producers import AbortTransaction, ProducerState, abort_of
from penstock.client.admin.quotas import QuotaEntity, QuotaFilter, QuotaMatch
from penstock.client.admin.reassignments import Election, PartitionReassignment
from penstock.client.admin.topic_descriptions import PartitionDescription, TopicDescription, TopicListing
from penstock.client.admin.topics import CreatedTopic, NewPartitions, NewTopic
from penstock.client.admin.transactions import FencedProducer, TransactionDescription, TransactionListing
from penstock.client.admin.users import ScramCredential, ScramCredentialInfo, ScramDeletion

__all__ = [
    "AbortTransaction",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "Admin",
    "AdminErrors",
    "AlterConfigKind",
    "AlterConfigOp",
    "ApiRange",
    "AsyncAdmin",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreatedTopic",
    "DeletedAcls",
    "Election",
    "ElectionType",
    "FeatureMetadata",
    "FeatureRange",
    "FeatureUpdate",
    "FeatureUpgrade",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupState",
    "GroupType",
    "HangingTransaction",
    "InvalidInput",
    "IsolationLevel",
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionReassignment",
    "PatternType",
    "ProducerState",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaMatch",
    "ReplicaInfo",
    "ReplicaLogDir",
    "ResourceType",
    "ScramCredential",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramMechanism",
    "Submit",
    "TopicDescription",
    "TopicListing",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "abort_of",
]
