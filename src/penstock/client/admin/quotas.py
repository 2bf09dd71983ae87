"""Quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from penstock.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

_TYPES: Final = ("user", "client-id", "ip")


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whose quota: `QuotaEntity.of(user="ann")`, `QuotaEntity.of(user=None, client_id="app")`. None is the default."""

    parts: tuple[tuple[str, str | None], ...]
    """Types (user, client-id, ip) and names, in this order."""

    @classmethod
    def of(cls, **names: str | None) -> QuotaEntity:
        """An entity of some of user, client id and address; an empty text means the default one."""
        return cls.of_mapping({key.replace("_", "-"): value for key, value in names.items()})

    @classmethod
    def of_mapping(cls, names: Mapping[str, str | None]) -> QuotaEntity:
        """An entity of Kafka's names for its parts."""
        for each in names:
            if each not in _TYPES:
                raise InvalidInput(f"quotas are of {', '.join(_TYPES)}, not of {each}")
        if not names:
            raise InvalidInput("a quota is somebody's: name a user, a client_id or an ip")
        return cls(tuple(sorted(names.items(), key=lambda it: _TYPES.index(it[0]))))

    def __str__(self) -> str:
        return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in self.parts)


class QuotaMatch(IntEnum):
    """Which names of a type match: one name, the default entity, or any that is named."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFilter:
    """Whose quotas to describe: a component for each type that is meant; `strict` leaves out entities with more."""

    components: tuple[tuple[str, QuotaMatch, str | None], ...] = ()
    strict: bool = False

    @classmethod
    def of(cls, *, strict: bool = False, **names: str | QuotaMatch | None) -> QuotaFilter:
        """`QuotaFilter.of(user="ann")`; None means the default entity, `QuotaMatch.ANY` anybody of the type."""
        return cls(components=tuple(_component(key, value) for key, value in names.items()), strict=strict)


def _component(key: str, value: str | QuotaMatch | None) -> tuple[str, QuotaMatch, str | None]:
    kind = key.replace("_", "-")
    if kind not in _TYPES:
        raise InvalidInput(f"quotas are of {', '.join(_TYPES)}, not of {kind}")
    if isinstance(value, QuotaMatch):
        return kind, value, None
    return kind, QuotaMatch.DEFAULT if value is None else QuotaMatch.EXACT, value


async def describe_client_quotas(
    asker: Asker,
    matching: QuotaFilter | None = None,
    *,
    timeout_ms: float | None = None,
) -> dict[QuotaEntity, dict[str, float]]:
    """Quotas by whose they are; all of them without a filter."""
    chosen = checks.instance(QuotaFilter() if matching is None else matching, QuotaFilter, "a filter of quotas")
    components = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in chosen.components]
    request = DescribeClientQuotasRequest(components=components, strict=chosen.strict)
    answer = await asker.any(ApiKey.DESCRIBE_CLIENT_QUOTAS, request, timeout_ms=timeout_ms)
    if answer.error_code:
        raise failure("describing quotas", answer.error_code, answer.error_message)
    return {_entity(each.entity): {value.key: value.value for value in each.values} for each in answer.entries or ()}


async def alter_client_quotas(
    asker: Asker,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[QuotaEntity, None]:
    """Set quotas (`producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, ...); None deletes one."""
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in _checked(entity).parts],
            ops=_steps(entity, values),
        )
        for entity, values in checks.mapping(changes, "quotas by entity").items()
    ]
    answer = await asker.controller(
        ApiKey.ALTER_CLIENT_QUOTAS,
        AlterClientQuotasRequest(entries=entries, validate_only=validate_only),
        timeout_ms=timeout_ms,
        codes=lambda it: (each.error_code for each in it.entries),
    )
    outcome: Outcome[QuotaEntity, None] = Outcome()
    for each in answer.entries:
        entity = _entity(each.entity)
        outcome.add(entity, None, each.error_code, f"the quota of {entity}", each.error_message)
    outcome.missing({each: f"the quota of {each}" for each in changes})
    return outcome.result()


def _checked(entity: object) -> QuotaEntity:
    return checks.instance(entity, QuotaEntity, "whose quota it is")


def _steps(entity: QuotaEntity, values: object) -> list[OpData]:
    steps = []
    for key, value in checks.mapping(values, f"quotas of {entity}").items():
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise InvalidInput(f"the quota {key} of {entity} is a number or None, not {checks.shown(value)}")
        steps.append(OpData(key=checks.name(key, "quotas"), value=float(value or 0.0), remove=value is None))
    return steps


def _entity(parts: Iterable[Any]) -> QuotaEntity:
    found = [(each.entity_type, each.entity_name) for each in parts]
    order = {kind: index for index, kind in enumerate(_TYPES)}
    return QuotaEntity(tuple(sorted(found, key=lambda it: order.get(it[0], len(order)))))
