from penstock.base.config.declaration import ConfigErrors as ConfigErrors
from penstock.base.errors import ErrorCode as ErrorCode
from penstock.base.types import TopicPartition as TopicPartition
from penstock.client.admin.acls import AclBinding as AclBinding
from penstock.client.admin.acls import AclFilter as AclFilter
from penstock.client.admin.admin import AsyncAdmin
from penstock.client.admin.config_values import AlterConfigOp as AlterConfigOp
from penstock.client.admin.config_values import ConfigEntry as ConfigEntry
from penstock.client.admin.config_values import ConfigResource as ConfigResource
from penstock.client.admin.enums import AclOperation as AclOperation
from penstock.client.admin.enums import AclPermission as AclPermission
from penstock.client.admin.enums import AlterConfigKind as AlterConfigKind
from penstock.client.admin.enums import ConfigResourceType as ConfigResourceType
from penstock.client.admin.enums import ElectionType as ElectionType
from penstock.client.admin.enums import IsolationLevel as IsolationLevel
from penstock.client.admin.enums import PatternType as PatternType
from penstock.client.admin.enums import ResourceType as ResourceType
from penstock.client.admin.enums import ScramMechanism as ScramMechanism
from penstock.client.admin.errors import AdminErrors as AdminErrors
from penstock.client.admin.errors import InvalidInput as InvalidInput
from penstock.client.admin.log_dirs import TopicPartitionReplica as TopicPartitionReplica
from penstock.client.admin.offsets import OffsetSpec as OffsetSpec
from penstock.client.admin.quotas import QuotaEntity as QuotaEntity
from penstock.client.admin.quotas import QuotaFilter as QuotaFilter
from penstock.client.admin.reassignments import PartitionReassignment as PartitionReassignment
from penstock.client.admin.topics import NewPartitions as NewPartitions
from penstock.client.admin.topics import NewTopic as NewTopic
from penstock.client.admin.users import ScramCredential as ScramCredential
from penstock.client.admin.users import ScramDeletion as ScramDeletion
from penstock.client.consumer.assignors.base import Assignment as Assignment
from penstock.client.consumer.assignors.base import AssignorBase as AssignorBase
from penstock.client.consumer.assignors.base import MemberSubscription as MemberSubscription
from penstock.client.consumer.assignors.base import RebalanceProtocol as RebalanceProtocol
from penstock.client.consumer.assignors.range import RangeAssignor as RangeAssignor
from penstock.client.consumer.assignors.round_robin import RoundRobinAssignor as RoundRobinAssignor
from penstock.client.consumer.assignors.sticky import CooperativeStickyAssignor as CooperativeStickyAssignor
from penstock.client.consumer.assignors.sticky import StickyAssignor as StickyAssignor
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.fetching.list_offsets import OffsetAndTimestamp as OffsetAndTimestamp
from penstock.client.consumer.interceptors import ConsumerInterceptor as ConsumerInterceptor
from penstock.client.consumer.listener import RebalanceListener as RebalanceListener
from penstock.client.consumer.offset_stores.base import OffsetStore as OffsetStore
from penstock.client.consumer.offset_stores.base import copy_offsets as copy_offsets
from penstock.client.consumer.offset_stores.base import offsets_after as offsets_after
from penstock.client.consumer.offset_stores.dbapi import DbApiOffsetStore as DbApiOffsetStore
from penstock.client.consumer.offset_stores.kafka import KafkaOffsetStore as KafkaOffsetStore
from penstock.client.consumer.offset_stores.zookeeper import ZooKeeperOffsetStore as ZooKeeperOffsetStore
from penstock.client.consumer.parallel.driver import AsyncParallelConsumer
from penstock.client.consumer.parallel.policy import HandlerFailed as HandlerFailed
from penstock.client.consumer.records import ConsumerRecords as ConsumerRecords
from penstock.client.consumer.streams.driver import AsyncMessageStream, AsyncMessageStreams
from penstock.client.core.types import ClusterSnapshot as ClusterSnapshot
from penstock.client.core.types import ConsumerGroupMetadata as ConsumerGroupMetadata
from penstock.client.core.types import Node as Node
from penstock.client.core.types import OffsetAndMetadata as OffsetAndMetadata
from penstock.client.core.types import PartitionInfo as PartitionInfo
from penstock.client.core.types import RecordMetadata as RecordMetadata
from penstock.client.core.types import TopicInfo as TopicInfo
from penstock.client.errors import ArrowMissing as ArrowMissing
from penstock.client.errors import AuthenticationFailed as AuthenticationFailed
from penstock.client.errors import AuthorizationFailed as AuthorizationFailed
from penstock.client.errors import BufferFull as BufferFull
from penstock.client.errors import ClientClosed as ClientClosed
from penstock.client.errors import ClientError as ClientError
from penstock.client.errors import ClusterAuthorizationFailed as ClusterAuthorizationFailed
from penstock.client.errors import CommitFailed as CommitFailed
from penstock.client.errors import ConcurrentUse as ConcurrentUse
from penstock.client.errors import CoordinatorNotAvailable as CoordinatorNotAvailable
from penstock.client.errors import FencedInstance as FencedInstance
from penstock.client.errors import ForkedClient as ForkedClient
from penstock.client.errors import GroupAuthorizationFailed as GroupAuthorizationFailed
from penstock.client.errors import InvalidState as InvalidState
from penstock.client.errors import InvalidTopic as InvalidTopic
from penstock.client.errors import KafkaError as KafkaError
from penstock.client.errors import KafkaTimeout as KafkaTimeout
from penstock.client.errors import LogTruncated as LogTruncated
from penstock.client.errors import MaxPollIntervalExceeded as MaxPollIntervalExceeded
from penstock.client.errors import NoBrokersReachable as NoBrokersReachable
from penstock.client.errors import NoOffsetForPartition as NoOffsetForPartition
from penstock.client.errors import OffsetOutOfRange as OffsetOutOfRange
from penstock.client.errors import OutOfOrderSequence as OutOfOrderSequence
from penstock.client.errors import ProducerFenced as ProducerFenced
from penstock.client.errors import RebalanceInProgress as RebalanceInProgress
from penstock.client.errors import RecordTooLarge as RecordTooLarge
from penstock.client.errors import SerializationError as SerializationError
from penstock.client.errors import TopicAlreadyExists as TopicAlreadyExists
from penstock.client.errors import TopicAuthorizationFailed as TopicAuthorizationFailed
from penstock.client.errors import TransactionAborted as TransactionAborted
from penstock.client.errors import TransactionalIdAuthorizationFailed as TransactionalIdAuthorizationFailed
from penstock.client.errors import TransactionError as TransactionError
from penstock.client.errors import UnknownTopicOrPartition as UnknownTopicOrPartition
from penstock.client.errors import UnsupportedByBroker as UnsupportedByBroker
from penstock.client.errors import WakeUp as WakeUp
from penstock.client.producer.delivery import BatchDelivery as BatchDelivery
from penstock.client.producer.delivery import BatchMetadata as BatchMetadata
from penstock.client.producer.delivery import Delivery as Delivery
from penstock.client.producer.interceptors import ProducerInterceptor as ProducerInterceptor
from penstock.client.producer.producer import AsyncProducer
from penstock.client.producer.record import ProducerRecord as ProducerRecord
from penstock.network.errors import ProtocolViolation as ProtocolViolation
from penstock.network.errors import UnsupportedMechanism as UnsupportedMechanism
from penstock.network.errors import WrongSecurityProtocol as WrongSecurityProtocol
from penstock.records.record import ConsumerRecord as ConsumerRecord

Admin = AsyncAdmin
Consumer = AsyncConsumer
MessageStream = AsyncMessageStream
MessageStreams = AsyncMessageStreams
ParallelConsumer = AsyncParallelConsumer
Producer = AsyncProducer
