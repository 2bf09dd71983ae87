"""`Admin`: the administration client for blocking code, over `AsyncAdmin` in a thread of its own.

Each method waits for its result; `admin.submit` has the same methods, which give a `concurrent.futures.Future` at once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from penstock.client.admin import (
    acls,
    cluster,
    configs,
    group_offsets,
    groups,
    hanging,
    log_dirs,
    offsets,
    producers,
    quotas,
    reassignments,
    topic_descriptions,
    topics,
    transactions,
    users,
)
from penstock.client.admin.admin import AsyncAdmin, Operation, method_of
from penstock.client.config import ClientConfig
from penstock.client.config.options import AdminOptions
from penstock.client.core.client import describe_client
from penstock.client.core.face import BlockingFace

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(operation: Operation[P, T]) -> Callable[Concatenate[Admin, P], T]:
    """The operation as a method that waits for its result."""

    @method_of(operation)
    def call(self: Admin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(self._core.perform(operation, *args, **kwargs))

    return call


def _submitted(operation: Operation[P, T]) -> Callable[Concatenate[Submit, P], Future[T]]:
    """The operation as a method that gives a future."""

    @method_of(operation, "Future[{}]")
    def call(self: Submit, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._admin._submit(self._admin._core.perform(operation, *args, **kwargs))

    return call


class Admin(BlockingFace):
    """An administration client. `with Admin(bootstrap_servers="localhost:9092") as admin: ...`"""

    _core: AsyncAdmin

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[AdminOptions]) -> None:
        core = AsyncAdmin(config, **options)
        super().__init__(core, name=core.client_id)

    def _describe(self) -> str:
        return describe_client(self._core._core)

    def _disconnect(self) -> Callable[[], Coroutine[Any, Any, object]]:
        return self._core._core.close

    @property
    def config(self) -> ClientConfig:
        """What the client was made with; `config.describe()` shows every key."""
        return self._core.config

    @property
    def submit(self) -> Submit:
        """The same methods, each of which gives a future at once."""
        return Submit(self)

    def metrics(self) -> dict[str, float]:
        """What this client counted and measured, by name."""
        return self._core.metrics()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return self._thread.submit(work)

    # Topics and records.
    create_topics = _blocking(topics.create_topics)
    delete_topics = _blocking(topics.delete_topics)
    create_partitions = _blocking(topics.create_partitions)
    list_topics = _blocking(topic_descriptions.list_topics)
    describe_topics = _blocking(topic_descriptions.describe_topics)
    list_offsets = _blocking(offsets.list_offsets)
    delete_records = _blocking(offsets.delete_records)

    # Configurations.
    describe_configs = _blocking(configs.describe_configs)
    incremental_alter_configs = _blocking(configs.incremental_alter_configs)
    alter_configs = _blocking(configs.alter_configs)
    list_config_resources = _blocking(configs.list_config_resources)

    # The cluster.
    describe_cluster = _blocking(cluster.describe_cluster)
    describe_api_versions = _blocking(cluster.describe_api_versions)
    describe_features = _blocking(cluster.describe_features)
    update_features = _blocking(cluster.update_features)

    # Replicas.
    describe_log_dirs = _blocking(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = _blocking(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = _blocking(log_dirs.alter_replica_log_dirs)
    alter_partition_reassignments = _blocking(reassignments.alter_partition_reassignments)
    list_partition_reassignments = _blocking(reassignments.list_partition_reassignments)
    elect_leaders = _blocking(reassignments.elect_leaders)

    # Groups.
    list_groups = _blocking(groups.list_groups)
    describe_groups = _blocking(groups.describe_groups)
    delete_groups = _blocking(groups.delete_groups)
    remove_group_members = _blocking(groups.remove_group_members)
    list_group_offsets = _blocking(group_offsets.list_group_offsets)
    alter_group_offsets = _blocking(group_offsets.alter_group_offsets)
    delete_group_offsets = _blocking(group_offsets.delete_group_offsets)

    # Transactions.
    list_transactions = _blocking(transactions.list_transactions)
    describe_transactions = _blocking(transactions.describe_transactions)
    describe_producers = _blocking(producers.describe_producers)
    fence_producers = _blocking(transactions.fence_producers)
    abort_transaction = _blocking(producers.abort_transaction)
    find_hanging_transactions = _blocking(hanging.find_hanging_transactions)

    # Security and quotas.
    describe_acls = _blocking(acls.describe_acls)
    create_acls = _blocking(acls.create_acls)
    delete_acls = _blocking(acls.delete_acls)
    describe_user_scram_credentials = _blocking(users.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(users.alter_user_scram_credentials)
    describe_client_quotas = _blocking(quotas.describe_client_quotas)
    alter_client_quotas = _blocking(quotas.alter_client_quotas)


class Submit:
    """`admin.submit`: the methods of `Admin`, which give a `concurrent.futures.Future`."""

    __slots__ = ("_admin",)

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    # Topics and records.
    create_topics = _submitted(topics.create_topics)
    delete_topics = _submitted(topics.delete_topics)
    create_partitions = _submitted(topics.create_partitions)
    list_topics = _submitted(topic_descriptions.list_topics)
    describe_topics = _submitted(topic_descriptions.describe_topics)
    list_offsets = _submitted(offsets.list_offsets)
    delete_records = _submitted(offsets.delete_records)

    # Configurations.
    describe_configs = _submitted(configs.describe_configs)
    incremental_alter_configs = _submitted(configs.incremental_alter_configs)
    alter_configs = _submitted(configs.alter_configs)
    list_config_resources = _submitted(configs.list_config_resources)

    # The cluster.
    describe_cluster = _submitted(cluster.describe_cluster)
    describe_api_versions = _submitted(cluster.describe_api_versions)
    describe_features = _submitted(cluster.describe_features)
    update_features = _submitted(cluster.update_features)

    # Replicas.
    describe_log_dirs = _submitted(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = _submitted(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = _submitted(log_dirs.alter_replica_log_dirs)
    alter_partition_reassignments = _submitted(reassignments.alter_partition_reassignments)
    list_partition_reassignments = _submitted(reassignments.list_partition_reassignments)
    elect_leaders = _submitted(reassignments.elect_leaders)

    # Groups.
    list_groups = _submitted(groups.list_groups)
    describe_groups = _submitted(groups.describe_groups)
    delete_groups = _submitted(groups.delete_groups)
    remove_group_members = _submitted(groups.remove_group_members)
    list_group_offsets = _submitted(group_offsets.list_group_offsets)
    alter_group_offsets = _submitted(group_offsets.alter_group_offsets)
    delete_group_offsets = _submitted(group_offsets.delete_group_offsets)

    # Transactions.
    list_transactions = _submitted(transactions.list_transactions)
    describe_transactions = _submitted(transactions.describe_transactions)
    describe_producers = _submitted(producers.describe_producers)
    fence_producers = _submitted(transactions.fence_producers)
    abort_transaction = _submitted(producers.abort_transaction)
    find_hanging_transactions = _submitted(hanging.find_hanging_transactions)

    # Security and quotas.
    describe_acls = _submitted(acls.describe_acls)
    create_acls = _submitted(acls.create_acls)
    delete_acls = _submitted(acls.delete_acls)
    describe_user_scram_credentials = _submitted(users.describe_user_scram_credentials)
    alter_user_scram_credentials = _submitted(users.alter_user_scram_credentials)
    describe_client_quotas = _submitted(quotas.describe_client_quotas)
    alter_client_quotas = _submitted(quotas.alter_client_quotas)
