"""Access control lists: who may do what with which resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import AclOperation, AclPermission, PatternType, ResourceType, numbered
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.client.errors import ClientError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from penstock.protocol.messages.describe_acls import DescribeAclsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """One rule: `AclBinding(resource_type=ResourceType.TOPIC, resource_name="orders", principal="User:ann",
    operation=AclOperation.READ)`.
    """

    resource_type: ResourceType
    resource_name: str
    """`*` stands for all; the cluster's name is `kafka-cluster`."""
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        what = f"{self.resource_type.name.lower()} {self.resource_name} ({self.pattern_type.name.lower()})"
        return f"{self.permission.name.lower()} {self.principal} {self.operation.name.lower()} {what} from {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which rules are meant; what is not given matches all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH finds every rule that would concern a resource of the name, whatever its pattern."""
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @classmethod
    def of(cls, binding: AclBinding) -> AclFilter:
        """Exactly one rule."""
        return cls(
            resource_type=binding.resource_type,
            resource_name=binding.resource_name,
            pattern_type=binding.pattern_type,
            principal=binding.principal,
            host=binding.host,
            operation=binding.operation,
            permission=binding.permission,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedAcls:
    """What one filter found. A rule that could not be deleted has an error of its own."""

    deleted: tuple[AclBinding, ...]
    failures: tuple[tuple[AclBinding, ClientError], ...] = ()


async def describe_acls(
    asker: Asker,
    matching: AclFilter | None = None,
    *,
    timeout_ms: float | None = None,
) -> tuple[AclBinding, ...]:
    """The access rules that a filter matches; all of them without one."""
    chosen = checks.instance(AclFilter() if matching is None else matching, AclFilter, "a filter of ACLs")
    request = DescribeAclsRequest(**_filter_fields(chosen))
    answer = await asker.any(ApiKey.DESCRIBE_ACLS, request, timeout_ms=timeout_ms)
    if answer.error_code:
        raise failure("describing ACLs", answer.error_code, answer.error_message)
    return tuple(
        AclBinding(
            resource_type=numbered(ResourceType, resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=numbered(PatternType, resource.pattern_type),
            **_rule(each),
        )
        for resource in answer.resources
        for each in resource.acls
    )


async def create_acls(
    asker: Asker, bindings: Iterable[AclBinding], *, timeout_ms: float | None = None
) -> dict[AclBinding, None]:
    """Add access rules. One that exists is no error."""
    wanted = checks.items([bindings] if isinstance(bindings, AclBinding) else bindings, "ACLs")
    for each in wanted:
        _check_binding(each)
    creations = [
        AclCreation(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            resource_pattern_type=each.pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        for each in wanted
    ]
    answer = await asker.controller(
        ApiKey.CREATE_ACLS,
        CreateAclsRequest(creations=creations),
        timeout_ms=timeout_ms,
        codes=lambda it: (each.error_code for each in it.results),
    )
    outcome: Outcome[AclBinding, None] = Outcome()
    for binding, result in zip(wanted, answer.results, strict=False):
        outcome.add(binding, None, result.error_code, f"ACL '{binding}'", result.error_message)
    outcome.missing({each: f"ACL '{each}'" for each in wanted})
    return outcome.result()


async def delete_acls(
    asker: Asker, filters: Iterable[AclFilter], *, timeout_ms: float | None = None
) -> dict[AclFilter, DeletedAcls]:
    """Delete the access rules that filters match, and tell which they were."""
    wanted = checks.items([filters] if isinstance(filters, AclFilter) else filters, "filters of ACLs")
    for each in wanted:
        checks.instance(each, AclFilter, "a filter of ACLs")
    answer = await asker.controller(
        ApiKey.DELETE_ACLS,
        DeleteAclsRequest(filters=[DeleteAclsFilter(**_filter_fields(each)) for each in wanted]),
        timeout_ms=timeout_ms,
        codes=lambda it: (each.error_code for each in it.filter_results),
    )
    outcome: Outcome[AclFilter, DeletedAcls] = Outcome()
    for chosen, result in zip(wanted, answer.filter_results, strict=False):
        outcome.add(chosen, _deleted(result), result.error_code, f"filter {chosen}", result.error_message)
    outcome.missing({each: f"filter {each}" for each in wanted})
    return outcome.result()


def _deleted(result: Any) -> DeletedAcls:
    deleted: list[AclBinding] = []
    failures: list[tuple[AclBinding, ClientError]] = []
    for each in result.matching_acls:
        binding = AclBinding(
            resource_type=numbered(ResourceType, each.resource_type),
            resource_name=each.resource_name,
            pattern_type=numbered(PatternType, each.pattern_type),
            **_rule(each),
        )
        if each.error_code:
            failures.append((binding, failure(f"ACL '{binding}'", each.error_code, each.error_message)))
        else:
            deleted.append(binding)
    return DeletedAcls(deleted=tuple(deleted), failures=tuple(failures))


def _rule(each: Any) -> dict[str, Any]:
    return {
        "principal": each.principal,
        "host": each.host,
        "operation": numbered(AclOperation, each.operation),
        "permission": numbered(AclPermission, each.permission_type),
    }


def _filter_fields(each: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": each.resource_type,
        "resource_name_filter": each.resource_name,
        "pattern_type_filter": each.pattern_type,
        "principal_filter": each.principal,
        "host_filter": each.host,
        "operation": each.operation,
        "permission_type": each.permission,
    }


def _check_binding(each: object) -> None:
    binding = checks.instance(each, AclBinding, "an ACL")
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidInput(f"ACL '{binding}': the pattern of a rule is literal or prefixed")
    if AclOperation.ANY is binding.operation or AclPermission.ANY is binding.permission:
        raise InvalidInput(f"ACL '{binding}': any is for filters only; a rule names its operation and permission")
    if ":" not in binding.principal:
        raise InvalidInput(f"ACL '{binding}': a principal has a type in front, as in User:{binding.principal}")
