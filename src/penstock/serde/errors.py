"""The one failure of this package."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError


class SerializationError(KafkaError):
    """A value could not be made bytes, or bytes could not be made a value. Trying again gives the same.

    The client that called fills in where it happened, as far as there is a place.
    """

    retriable = False
    fatal = False
    abortable = False

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __init__(self, message: str = "", *, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)
