"""What a user may give as a serializer or deserializer, and what a client gets for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""A record's headers. A serializer may add to them where the client gives a list."""

Serialize: TypeAlias = Callable[[str, Any, Headers], bytes | None]
"""What a producer calls for every key or value: (topic, value, headers)."""

Deserialize: TypeAlias = Callable[[str, bytes | None, Headers], Any]
"""What a consumer calls for every key or value: (topic, data, headers)."""


@runtime_checkable
class Serializer(Protocol):
    """An object that makes bytes. It may have `close()` as well."""

    def serialize(self, topic: str, value: Any, headers: Headers, /) -> bytes | None:
        """The bytes of a value; None is a record without this part (a tombstone, if it is the value)."""


@runtime_checkable
class Deserializer(Protocol):
    """An object that makes values of bytes. It may have `close()` as well."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers, /) -> Any:
        """The value of the bytes."""
