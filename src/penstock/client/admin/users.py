"""SCRAM credentials of users. Passwords are salted and hashed here; the broker never sees them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import ScramMechanism, numbered
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_user_scram_credentials as altering
from penstock.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
_SALT_BYTES: Final = 26
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialInfo:
    """What can be told of a credential."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """A credential to set: made if there is none, replaced if there is."""

    user: str
    password: str | bytes = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
    iterations: int = ITERATIONS_MIN
    salt: bytes | None = field(default=None, repr=False)
    """Random if not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramDeletion:
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism


async def describe_user_scram_credentials(
    asker: Asker, users: Iterable[str] | None = None, *, timeout_ms: float | None = None
) -> dict[str, tuple[ScramCredentialInfo, ...]]:
    """Which SCRAM credentials users have; of all users, if none is named."""
    named = None if users is None else [UserName(name=each) for each in checks.names(users, "users")]
    answer = await asker.any(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        DescribeUserScramCredentialsRequest(users=named),
        timeout_ms=timeout_ms,
    )
    if answer.error_code:
        raise failure("describing SCRAM credentials", answer.error_code, answer.error_message)
    outcome: Outcome[str, tuple[ScramCredentialInfo, ...]] = Outcome()
    for each in answer.results:
        infos = tuple(
            ScramCredentialInfo(mechanism=numbered(ScramMechanism, info.mechanism), iterations=info.iterations)
            for info in each.credential_infos
        )
        outcome.add(each.user, infos, each.error_code, f"user {each.user}", each.error_message)
    return outcome.result()


async def alter_user_scram_credentials(
    asker: Asker, changes: Iterable[ScramCredential | ScramDeletion], *, timeout_ms: float | None = None
) -> dict[str, None]:
    """Set or delete SCRAM credentials of users."""
    wanted = checks.items([changes] if isinstance(changes, ScramCredential | ScramDeletion) else changes, "credentials")
    deletions = [_deletion(each) for each in wanted if isinstance(each, ScramDeletion)]
    # Hashing takes milliseconds for each: not on the loop.
    upsertions = await asker.core.ports.tasks.run_blocking(
        lambda: [_upsertion(each) for each in wanted if not isinstance(each, ScramDeletion)]
    )
    answer = await asker.controller(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        altering.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions),
        timeout_ms=timeout_ms,
        codes=lambda it: (each.error_code for each in it.results),
    )
    outcome: Outcome[str, None] = Outcome()
    for each in answer.results:
        outcome.add(each.user, None, each.error_code, f"user {each.user}", each.error_message)
    outcome.missing({each.user: f"user {each.user}" for each in wanted})
    return outcome.result()


def _deletion(change: ScramDeletion) -> altering.ScramCredentialDeletion:
    return altering.ScramCredentialDeletion(
        name=checks.name(change.user, "users"), mechanism=_mechanism(change.mechanism)
    )


def _upsertion(change: object) -> altering.ScramCredentialUpsertion:
    chosen = checks.instance(change, ScramCredential, "a credential")
    checks.name(chosen.user, "users")
    mechanism = _mechanism(chosen.mechanism)
    checks.number(
        chosen.iterations, f"iterations of user {chosen.user}", at_least=ITERATIONS_MIN, at_most=ITERATIONS_MAX
    )
    password = chosen.password.encode() if isinstance(chosen.password, str) else bytes(chosen.password)
    if not password:
        raise InvalidInput(f"the password of user {chosen.user} is empty")
    salt = secrets.token_bytes(_SALT_BYTES) if chosen.salt is None else chosen.salt
    return altering.ScramCredentialUpsertion(
        name=chosen.user,
        mechanism=mechanism,
        iterations=chosen.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(_HASHES[mechanism], password, salt, chosen.iterations),
    )


def _mechanism(value: object) -> ScramMechanism:
    chosen = checks.member(value, ScramMechanism, "a SCRAM mechanism")
    if chosen not in _HASHES:
        raise InvalidInput("a SCRAM mechanism is SCRAM-SHA-256 or SCRAM-SHA-512")
    return chosen
