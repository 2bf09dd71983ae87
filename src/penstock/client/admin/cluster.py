"""The cluster: its brokers, the APIs they serve, its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import NOT_ASKED, AclOperation, FeatureUpgrade, operations
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.client.core.types import Node
from penstock.client.errors import UnsupportedByBroker
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

_BROKERS: Final = 1
_SOFTWARE: Final = "penstock-admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster's id, brokers and controller."""

    cluster_id: str | None
    controller: Node | None
    """With KRaft, a broker that passes requests on to the controller."""
    nodes: tuple[Node, ...]
    fenced: frozenset[int] = frozenset()
    """Brokers that are registered and not in use; only if they were asked for."""
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRange:
    """An API that a broker serves, and the versions."""

    key: int
    name: str
    """Of an API that is not known here: API and its number."""
    lowest: int
    highest: int
    usable: int | None
    """The version that this client would speak; None if there is none in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    """Levels of a feature, both ends included."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMetadata:
    """The features that a broker supports, and those that the cluster finalized, by name."""

    supported: Mapping[str, FeatureRange]
    finalized: Mapping[str, FeatureRange]
    epoch: int | None
    """Grows with each change of the finalized ones; None where the broker does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """A level to finalize; 0 takes a feature out of use."""

    level: int
    upgrade: FeatureUpgrade = FeatureUpgrade.UPGRADE


async def describe_cluster(
    asker: Asker,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
    timeout_ms: float | None = None,
) -> ClusterDescription:
    """The cluster's id, its brokers, and its controller."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=_BROKERS,
        include_fenced_brokers=include_fenced_brokers,
    )
    try:
        answer = await asker.any(
            ApiKey.DESCRIBE_CLUSTER, request, timeout_ms=timeout_ms, at_least=2 if include_fenced_brokers else 0
        )
    except UnsupportedByBroker:
        if include_fenced_brokers:
            raise
        return await _by_metadata(asker, include_authorized_operations, timeout_ms)
    if answer.error_code:
        raise failure("describing the cluster", answer.error_code, answer.error_message)
    nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller=nodes.get(answer.controller_id),
        nodes=tuple(sorted(nodes.values())),
        fenced=frozenset(each.broker_id for each in answer.brokers if each.is_fenced),
        authorized_operations=operations(answer.cluster_authorized_operations),
    )


async def _by_metadata(asker: Asker, with_operations: bool, timeout_ms: float | None) -> ClusterDescription:
    """Of brokers before Kafka 2.8. Only versions 8 to 10 tell what is allowed."""
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=with_operations)
    limits = {"at_least": 8, "at_most": 10} if with_operations else {}
    answer = await asker.any(ApiKey.METADATA, request, timeout_ms=timeout_ms, **limits)
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller=nodes.get(answer.controller_id),
        nodes=tuple(sorted(nodes.values())),
        authorized_operations=operations(answer.cluster_authorized_operations if with_operations else NOT_ASKED),
    )


async def describe_api_versions(asker: Asker, broker: int, *, timeout_ms: float | None = None) -> dict[str, ApiRange]:
    """Which APIs a broker serves, in which versions, by name."""
    answer = await _versions(asker, checks.number(broker, "the broker"), timeout_ms)
    found = (_range(each) for each in answer.api_keys)
    return {each.name: each for each in sorted(found, key=lambda it: it.key)}


def _range(each: Any) -> ApiRange:
    known = APIS.get(each.api_key)
    if known is None:
        return ApiRange(
            key=each.api_key, name=f"API {each.api_key}", lowest=each.min_version, highest=each.max_version, usable=None
        )
    usable = min(known.highest_version, each.max_version)
    return ApiRange(
        key=each.api_key,
        name=known.name,
        lowest=each.min_version,
        highest=each.max_version,
        usable=usable if usable >= max(known.lowest_version, each.min_version) else None,
    )


async def describe_features(
    asker: Asker, *, broker: int | None = None, timeout_ms: float | None = None
) -> FeatureMetadata:
    """Which features the brokers support, and which levels are in use, as one broker tells."""
    answer = await _versions(asker, broker, timeout_ms)
    supported = {
        each.name: FeatureRange(lowest=each.min_version, highest=each.max_version) for each in answer.supported_features
    }
    finalized = {
        each.name: FeatureRange(lowest=each.min_version_level, highest=each.max_version_level)
        for each in answer.finalized_features
    }
    epoch = answer.finalized_features_epoch
    return FeatureMetadata(
        supported=dict(sorted(supported.items())),
        finalized=dict(sorted(finalized.items())),
        epoch=epoch if epoch >= 0 else None,
    )


async def _versions(asker: Asker, broker: int | None, timeout_ms: float | None) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
    if broker is None:
        answer = await asker.any(ApiKey.API_VERSIONS, request, timeout_ms=timeout_ms)
    else:
        answer = await asker.broker(
            checks.number(broker, "the broker"), ApiKey.API_VERSIONS, request, timeout_ms=timeout_ms
        )
    if answer.error_code:
        raise failure("asking for API versions", answer.error_code)
    found: ApiVersionsResponse = answer
    return found


async def update_features(
    asker: Asker,
    updates: Mapping[str, FeatureUpdate | int],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[str, None]:
    """Set the levels of features; the controller takes all of them or none."""
    wanted = {
        checks.name(name, "features"): _update(name, each)
        for name, each in checks.mapping(updates, "levels by feature").items()
    }
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=each.level, upgrade_type=each.upgrade)
        for name, each in wanted.items()
    ]
    answer = await asker.controller(
        ApiKey.UPDATE_FEATURES,
        UpdateFeaturesRequest(
            feature_updates=keys, validate_only=validate_only, timeout_ms=asker.server_ms(timeout_ms)
        ),
        timeout_ms=timeout_ms,
        at_least=1,
        codes=lambda it: (it.error_code, *(each.error_code for each in it.results)),
    )
    outcome: Outcome[str, None] = Outcome()
    for each in answer.results:
        outcome.add(each.feature, None, each.error_code, f"feature {each.feature}", each.error_message)
    if answer.error_code and not outcome.failed:
        raise failure("updating features", answer.error_code, answer.error_message)
    # Since version 2 the whole request succeeds or fails, and single features are not mentioned.
    outcome.done |= {name: None for name in wanted if name not in outcome.failed}
    return outcome.result()


def _update(name: str, value: object) -> FeatureUpdate:
    if isinstance(value, int) and not isinstance(value, bool):
        value = FeatureUpdate(level=value)
    update = checks.instance(value, FeatureUpdate, f"the level of feature {name}")
    checks.number(update.level, f"the level of feature {name}", at_most=32767)
    if update.level == 0 and update.upgrade is FeatureUpgrade.UPGRADE:
        raise InvalidInput(f"feature {name}: to take it out of use is a downgrade: say which, safe or unsafe")
    return update
