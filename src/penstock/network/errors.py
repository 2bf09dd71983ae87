"""What can go wrong between this process and a broker, and whose fault it is.

`RemoteError` is the other side's doing (or the network's), `LocalError` is ours; the two that are neither stand beside
them: a time-out, and two sides that have no version in common. Each is a `KafkaError`, so whoever only wants a code
for an answer has one, and each says in a sentence what happened, where, and what to do about it.

`retriable`: the same request may succeed later, on a new connection. `was_sent`: the request may have reached the
broker and may have been carried out; when it is false, it surely was not.
"""

from __future__ import annotations

from typing import ClassVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.network.address import Address


class NetworkError(KafkaError):
    retriable: bool = False
    default_code: ClassVar[ErrorCode] = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, address: Address | None, reason: str, *, was_sent: bool = False) -> None:
        super().__init__(self.default_code, f"{address}: {reason}" if address is not None else reason)
        self.address = address
        self.reason = reason
        self.was_sent = was_sent

    def for_request(self, *, was_sent: bool) -> NetworkError:
        """The same failure as one request sees it: requests do not share an exception, which collects tracebacks."""
        copy = type(self)(self.address, self.reason, was_sent=was_sent)
        copy.__cause__ = self.__cause__
        return copy


class RemoteError(NetworkError):
    """The broker, or what stands at its address, or the way there."""


class ConnectFailed(RemoteError):  # noqa: N818 - named for what happened
    """No connection came about, or it ended before it could be used. Nothing was sent."""

    retriable = True


class UnknownNode(ConnectFailed):
    """No address is known for this node; new metadata may bring one."""

    default_code = ErrorCode.BROKER_NOT_AVAILABLE


class Disconnected(RemoteError):  # noqa: N818
    """The connection ended while the request waited for its answer."""

    retriable = True


class ProtocolViolation(RemoteError):  # noqa: N818
    """The other side sent something that is no answer. The connection is closed: nothing behind it can be trusted."""


class AuthenticationFailed(RemoteError):  # noqa: N818
    """One side does not believe the other: credentials, token or certificate. The same attempt fails again."""

    default_code = ErrorCode.SASL_AUTHENTICATION_FAILED


class UnsupportedMechanism(AuthenticationFailed):
    """The broker does not offer the SASL mechanism that is configured here."""

    default_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class WrongSecurityProtocol(AuthenticationFailed):
    """The listener speaks another `security.protocol` than the one that is configured here."""

    default_code = ErrorCode.ILLEGAL_SASL_STATE


class RequestTimedOut(NetworkError):  # noqa: N818
    """No answer in time. If it was sent, the connection is closed too: its order of answers is lost."""

    retriable = True
    default_code = ErrorCode.REQUEST_TIMED_OUT


class UnsupportedVersion(NetworkError):  # noqa: N818
    """Both sides know the API, or only one does, but there is no version that both can speak."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


class LocalError(NetworkError):
    """This process."""

    default_code = ErrorCode.UNKNOWN_SERVER_ERROR


class InvalidRequest(LocalError):  # noqa: N818
    """The message holds something that its version cannot carry."""

    default_code = ErrorCode.INVALID_REQUEST


class QueueFull(LocalError):  # noqa: N818
    """More requests wait for this broker than are allowed to."""

    retriable = True
    default_code = ErrorCode.NETWORK_EXCEPTION


class ClosedHere(LocalError):  # noqa: N818
    """This side closed the connection, the channel or the pool; whether the request was carried out is not known."""

    default_code = ErrorCode.NETWORK_EXCEPTION
