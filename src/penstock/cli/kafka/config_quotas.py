"""Quotas and SCRAM credentials of users, clients and IP addresses, as `kafka-configs` shows and changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.cli.failures import Failed
from penstock.cli.kafka.parsing import UsageError

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ScramCredential, ScramDeletion, ScramMechanism

_WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTA_KINDS = {"users": "user", "clients": "client-id", "ips": "ip"}
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS = 4096


class EntityLike(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str | None: ...


def describe(admin: Admin, entities: Sequence[EntityLike]) -> None:
    from penstock.client.admin import QuotaFilter, QuotaMatch

    components: list[tuple[str, QuotaMatch, str | None]] = []
    for each in entities:
        how = QuotaMatch.ANY if each.name is None else QuotaMatch.EXACT if each.name else QuotaMatch.DEFAULT
        components.append((_QUOTA_KINDS[each.kind], how, each.name or None))
    quotas = admin.describe_client_quotas(QuotaFilter(components=tuple(components), strict=True))
    for entity, values in quotas.items():
        whose = ", ".join(_named(kind, name) for kind, name in entity.parts)
        print(f"Quota configs for {whose} are {', '.join(f'{key}={values[key]}' for key in sorted(values))}")
    if [each.kind for each in entities] == ["users"] and entities[0].name != "":
        _describe_credentials(admin, entities[0].name)


def _named(kind: str, name: str | None) -> str:
    return f"the default {_WORDS[kind]}" if name is None else f"{_WORDS[kind]} '{name}'"


def _describe_credentials(admin: Admin, user: str | None) -> None:
    from penstock.base.errors import ErrorCode, KafkaError

    try:
        found = admin.describe_user_scram_credentials(None if user is None else [user])
    except KafkaError as error:
        # A user without credentials has quotas all the same, and brokers may have no users of this kind.
        if error.code in (ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return
        raise
    for name, credentials in found.items():
        shown = ", ".join(
            f"{each.mechanism.name.replace('_', '-')}=iterations={each.iterations}" for each in credentials
        )
        print(f"SCRAM credential configs for user-principal '{name}' are {shown}")


def alter(admin: Admin, entities: Sequence[EntityLike], added: Mapping[str, str], deleted: Sequence[str]) -> None:
    from penstock.client.admin import QuotaEntity

    credentials = _credentials(entities, added, deleted)
    quotas: dict[str, float | None] = {key: None for key in deleted if key not in _SCRAM}
    quotas |= {key: _rate(key, value) for key, value in added.items() if key not in _SCRAM}
    if quotas:
        names = {_QUOTA_KINDS[each.kind]: each.name or None for each in entities}
        admin.alter_client_quotas({QuotaEntity.of_mapping(names): quotas})
    if credentials:
        admin.alter_user_scram_credentials(credentials)


def _rate(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Failed(f"Cannot parse quota configuration value for {key}: {value}") from None


def _credentials(
    entities: Sequence[EntityLike], added: Mapping[str, str], deleted: Sequence[str]
) -> list[ScramCredential | ScramDeletion]:
    from penstock.client.admin import ScramCredential, ScramDeletion

    wanted = [key for key in (*added, *deleted) if key in _SCRAM]
    if not wanted:
        return []
    user = entities[0].name
    if len(entities) > 1 or entities[0].kind != "users" or not user:
        raise UsageError(f"{wanted[0]} is a credential of one user: name it with --user, and nothing else")
    changes: list[ScramCredential | ScramDeletion] = [
        ScramDeletion(user=user, mechanism=_mechanism(key)) for key in deleted if key in _SCRAM
    ]
    for key in _SCRAM:
        if key in added:
            password, iterations = scram_parts(key, added[key])
            changes.append(
                ScramCredential(user=user, password=password, mechanism=_mechanism(key), iterations=iterations)
            )
    return changes


def scram_parts(key: str, text: str) -> tuple[str, int]:
    """`iterations=8192,password=secret`: a password may have commas and signs of equality in it."""
    iterations = _ITERATIONS
    rest = text
    if rest.startswith("iterations="):
        number, _, rest = rest.removeprefix("iterations=").partition(",")
        if not number.strip().isdecimal():
            raise UsageError(f"{key}: the number of iterations is no number")
        iterations = int(number)
    if not rest.startswith("password="):
        raise UsageError(f"{key} takes [iterations=8192,password=...], and there is no password in it")
    return rest.removeprefix("password="), iterations


def _mechanism(key: str) -> ScramMechanism:
    from penstock.client.admin import ScramMechanism

    return ScramMechanism[key.replace("-", "_")]
