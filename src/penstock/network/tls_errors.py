"""Why TLS did not come about, in sentences that say what to do.

What OpenSSL calls a reason tells whose certificate was the trouble: a verification error is our judgement of the
broker's, an alert is the broker's judgement of ours.
"""

from __future__ import annotations

import ssl
from typing import Final

from penstock.network.address import Address
from penstock.network.errors import AuthenticationFailed, ConnectFailed, NetworkError, WrongSecurityProtocol

_EXPIRED: Final = 10
_NOT_YET_VALID: Final = 9
_SELF_SIGNED: Final = frozenset({18, 19})
_UNKNOWN_ISSUER: Final = frozenset({2, 20, 21})
_WRONG_NAME: Final = frozenset({62, 63, 64})

_TRUST: Final = "set ssl.truststore.location to the PEM file of the authority that signed it"
_ALERTS: Final = (
    ("CERTIFICATE_REQUIRED", "the broker wants a client certificate: set ssl.keystore.location"),
    ("ALERT_UNKNOWN_CA", "the broker does not trust our certificate: have it signed by an authority it trusts"),
    ("ALERT_CERTIFICATE_EXPIRED", "the broker says that our certificate has expired: renew ssl.keystore.location"),
    ("ALERT_CERTIFICATE_REVOKED", "the broker says that our certificate is revoked: renew ssl.keystore.location"),
    ("ALERT_BAD_CERTIFICATE", "the broker refuses our certificate, or wants one: check ssl.keystore.location"),
    ("ALERT_CERTIFICATE_UNKNOWN", "the broker refuses our certificate: check ssl.keystore.location and its authority"),
    ("ALERT_PROTOCOL_VERSION", "the broker and this client share no TLS version: check ssl.enabled.protocols"),
    ("UNSUPPORTED_PROTOCOL", "the broker and this client share no TLS version: check ssl.enabled.protocols"),
    (
        "ALERT_HANDSHAKE_FAILURE",
        "the broker shares no cipher suite or TLS version with this client, or wants a client certificate: "
        "check ssl.cipher.suites, ssl.enabled.protocols and ssl.keystore.location",
    ),
)
_NO_TLS_REASONS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")


def describe_tls_failure(address: Address, error: ssl.SSLError) -> NetworkError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(address, _describe_certificate(address, error))
    reason = error.reason or ""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ConnectFailed(address, closed_in_handshake(error))
    if any(mark in reason for mark in _NO_TLS_REASONS):
        return not_tls(address)
    for mark, sentence in _ALERTS:
        if mark in reason:
            return AuthenticationFailed(address, sentence)
    return AuthenticationFailed(address, f"TLS failed ({reason or error}): check the ssl.* settings of both sides")


def not_tls(address: Address) -> WrongSecurityProtocol:
    return WrongSecurityProtocol(
        address,
        "the listener does not speak TLS, but this client does: set security.protocol to PLAINTEXT or "
        "SASL_PLAINTEXT, or give the address of a TLS listener",
    )


def closed_in_handshake(error: Exception) -> str:
    return (
        f"the connection ended during the TLS handshake ({error or type(error).__name__}): "
        "is this a TLS listener, and security.protocol its own?"
    )


def _describe_certificate(address: Address, error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "the broker's certificate has expired: renew it, or check the clock of this machine"
    if code == _NOT_YET_VALID:
        return "the broker's certificate is not valid yet: check the clocks of both machines"
    if code in _SELF_SIGNED or code in _UNKNOWN_ISSUER:
        return f"the broker's certificate is not signed by an authority that is trusted here: {_TRUST}"
    if code in _WRONG_NAME:
        return (
            f"the broker's certificate is not made out to {address.host!r}: connect by a name that it holds, "
            "have one made out to this name, or set ssl.endpoint.identification.algorithm to nothing"
        )
    return f"the broker's certificate is refused ({error.verify_message}): {_TRUST}"
