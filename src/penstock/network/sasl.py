"""SASL over a connection: SaslHandshake names the mechanism, SaslAuthenticate carries its messages (KIP-43, KIP-152).

The same step serves a new connection and a session that is prolonged (KIP-368). What the broker says when it refuses
is kept in the sentence, and so is what can be done: nothing here is tried twice, because a wrong password stays wrong
and some servers lock an account that fails too often.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from penstock.base.errors import ErrorCode
from penstock.network.address import Address
from penstock.network.errors import (
    AuthenticationFailed,
    UnsupportedMechanism,
    UnsupportedVersion,
    WrongSecurityProtocol,
)
from penstock.network.handshake import Opening, Step, name_of
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.sasl.mechanism import ClientMechanism, SaslError

MechanismSource = Callable[[], Awaitable[ClientMechanism]]
"""A new exchange for each authentication; may have to fetch a token first."""

ROUNDS_MAX: Final = 8
"""No mechanism here needs more than three: a broker that goes on is not a broker."""


def sasl_step(mechanism_name: str, source: MechanismSource, *, remedy: str) -> Step:
    """`remedy` ends the sentence about refused credentials."""

    async def authenticate(opening: Opening) -> None:
        try:
            mechanism = await source()
            await _shake_hands(opening, mechanism_name)
            opening.session_lifetime_ms = await _exchange(opening, mechanism, remedy)
        except SaslError as error:
            raise AuthenticationFailed(opening.connection.address, f"{mechanism_name}: {error}") from error
        opening.authenticate = authenticate

    return authenticate


async def _shake_hands(opening: Opening, mechanism_name: str) -> None:
    try:
        version = opening.versions.pick(ApiKey.SASL_HANDSHAKE, at_least=1)
    except UnsupportedVersion as error:
        raise _without_sasl(opening.connection.address) from error
    response: SaslHandshakeResponse = await opening.connection.send(
        ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism_name)
    )
    address, code = opening.connection.address, response.error_code
    if code == ErrorCode.NONE:
        return
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        reason = f"the listener does not offer {mechanism_name}: set sasl.mechanism to one it offers ({offered})"
        raise UnsupportedMechanism(address, reason)
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        raise _without_sasl(address)
    raise AuthenticationFailed(address, f"the broker refused to begin with {mechanism_name}: error {name_of(code)}")


def _without_sasl(address: Address) -> WrongSecurityProtocol:
    return WrongSecurityProtocol(
        address, "the listener does not authenticate with SASL: set security.protocol to PLAINTEXT or SSL"
    )


async def _exchange(opening: Opening, mechanism: ClientMechanism, remedy: str) -> int:
    """Gives the lifetime of the session in ms, 0 for one that does not end."""
    message = mechanism.first()
    for _ in range(ROUNDS_MAX):
        response = await _ask(opening, message)
        if response.error_code != ErrorCode.NONE:
            raise AuthenticationFailed(opening.connection.address, _describe_refusal(mechanism, response, remedy))
        answer = mechanism.step(response.auth_bytes)
        if answer is None:
            if not mechanism.is_complete:
                raise SaslError("the broker claims success before it has proven itself")
            return response.session_lifetime_ms
        message = answer
    raise SaslError("the broker does not come to an end")


async def _ask(opening: Opening, message: bytes) -> SaslAuthenticateResponse:
    version = opening.versions.pick(ApiKey.SASL_AUTHENTICATE)
    response: SaslAuthenticateResponse = await opening.connection.send(
        ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=message)
    )
    return response


def _describe_refusal(mechanism: ClientMechanism, response: SaslAuthenticateResponse, remedy: str) -> str:
    told = response.error_message or name_of(response.error_code)
    return f"the broker refused the {mechanism.name} credentials ({told}): {remedy}"
