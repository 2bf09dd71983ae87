"""`AsyncAdmin`: everything an administrator can ask a cluster, on asyncio.

The class is a façade: each method is a function of the module of its noun (`topics`, `configs`, `groups`, ...), bound
to this client's connection. `admin.create_topics(...)` is `topics.create_topics(asker, ...)`, with the same parameters.

Methods give typed results by what was asked for. If one thing was asked for and failed, its error is raised; if some
of several failed, `AdminErrors`, which has the failures and the successes. Every method takes `timeout_ms`
(`default.api.timeout.ms` if not given).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
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
from penstock.client.admin.asking import Asker
from penstock.client.config import ClientConfig, ClientKind
from penstock.client.config.options import AdminOptions
from penstock.client.core.client import ClientCore, describe_client

P = ParamSpec("P")
T = TypeVar("T")

Operation = Callable[Concatenate[Asker, P], Coroutine[Any, Any, T]]


M = TypeVar("M", bound=Callable[..., Any])


def method_of(operation: Operation[P, T], result: str = "{}") -> Callable[[M], M]:
    """For a method that does an operation: its name and text, and for `help()` its parameters behind `self`."""

    def decorate(method: M) -> M:
        functools.update_wrapper(method, operation)
        signature = inspect.signature(operation)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        setattr(  # noqa: B010 - mypy knows no such attribute of a function
            method, "__signature__", signature.replace(
                parameters=[own, *list(signature.parameters.values())[1:]],
                return_annotation=result.format(signature.return_annotation),
            ),
        )  # fmt: skip
        return method

    return decorate


def _bound(operation: Operation[P, T]) -> Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, T]]:
    """The operation as a method: the client is started if need be, and its connection is the first argument."""

    @method_of(operation)
    async def method(self: AsyncAdmin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.perform(operation, *args, **kwargs)

    return method


class AsyncAdmin:
    """An administration client. `async with AsyncAdmin(bootstrap_servers="localhost:9092") as admin: ...`"""

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[AdminOptions]) -> None:
        self.config = ClientConfig(ClientKind.ADMIN, config, dict(options))
        self._core = ClientCore(self.config)
        self._asker = Asker(self._core)

    @property
    def client_id(self) -> str:
        """The name under which brokers know this client."""
        return self._core.client_id

    async def start(self) -> None:
        """Bind to the running loop. Methods do this by themselves."""
        await self._core.start()

    async def close(self) -> None:
        """Close the connections; calls that wait end with ClientClosed. Again is no error."""
        await self._core.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe_client(self._core)}, {'closed' if self._core.is_closed else 'open'}>"

    async def __aenter__(self) -> AsyncAdmin:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def perform(self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do any operation that takes an `Asker` first, on this client's connection."""
        await self.start()
        return await operation(self._asker, *args, **kwargs)

    def metrics(self) -> dict[str, float]:
        """What this client counted and measured, by name."""
        return self._core.metrics.read()

    # Topics and records.
    create_topics = _bound(topics.create_topics)
    delete_topics = _bound(topics.delete_topics)
    create_partitions = _bound(topics.create_partitions)
    list_topics = _bound(topic_descriptions.list_topics)
    describe_topics = _bound(topic_descriptions.describe_topics)
    list_offsets = _bound(offsets.list_offsets)
    delete_records = _bound(offsets.delete_records)

    # Configurations.
    describe_configs = _bound(configs.describe_configs)
    incremental_alter_configs = _bound(configs.incremental_alter_configs)
    alter_configs = _bound(configs.alter_configs)
    list_config_resources = _bound(configs.list_config_resources)

    # The cluster.
    describe_cluster = _bound(cluster.describe_cluster)
    describe_api_versions = _bound(cluster.describe_api_versions)
    describe_features = _bound(cluster.describe_features)
    update_features = _bound(cluster.update_features)

    # Replicas.
    describe_log_dirs = _bound(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = _bound(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = _bound(log_dirs.alter_replica_log_dirs)
    alter_partition_reassignments = _bound(reassignments.alter_partition_reassignments)
    list_partition_reassignments = _bound(reassignments.list_partition_reassignments)
    elect_leaders = _bound(reassignments.elect_leaders)

    # Groups.
    list_groups = _bound(groups.list_groups)
    describe_groups = _bound(groups.describe_groups)
    delete_groups = _bound(groups.delete_groups)
    remove_group_members = _bound(groups.remove_group_members)
    list_group_offsets = _bound(group_offsets.list_group_offsets)
    alter_group_offsets = _bound(group_offsets.alter_group_offsets)
    delete_group_offsets = _bound(group_offsets.delete_group_offsets)

    # Transactions.
    list_transactions = _bound(transactions.list_transactions)
    describe_transactions = _bound(transactions.describe_transactions)
    describe_producers = _bound(producers.describe_producers)
    fence_producers = _bound(transactions.fence_producers)
    abort_transaction = _bound(producers.abort_transaction)
    find_hanging_transactions = _bound(hanging.find_hanging_transactions)

    # Security and quotas.
    describe_acls = _bound(acls.describe_acls)
    create_acls = _bound(acls.create_acls)
    delete_acls = _bound(acls.delete_acls)
    describe_user_scram_credentials = _bound(users.describe_user_scram_credentials)
    alter_user_scram_credentials = _bound(users.alter_user_scram_credentials)
    describe_client_quotas = _bound(quotas.describe_client_quotas)
    alter_client_quotas = _bound(quotas.alter_client_quotas)
