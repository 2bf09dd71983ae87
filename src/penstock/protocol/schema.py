"""How a message class says what it looks like on the wire.

A message is a slotted keyword-only dataclass, made by `@message`, whose fields are declared with `wire(...)`. The type
is Kafka's own word for it (`int32`, `string`, `[]int32`, `[]CreatableTopic`); a capitalised name is another message
class of the same module. A version range is `"3-"`, `"0-4"` or `"7"`; `""` is no version at all. Fields stand in wire
order, and a field that a version lacks is neither written nor read: the reader then leaves the default.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, NamedTuple, TypeVar, dataclass_transform

MISSING = dataclasses.MISSING

MessageT = TypeVar("MessageT", bound="Message")


class VersionRange(NamedTuple):
    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        if not text:
            return cls(1, 0)
        low, dash, high = text.partition("-")
        if not dash:
            return cls(int(low), int(low))
        return cls(int(low), int(high) if high else sys.maxsize)

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


class Wire(NamedTuple):
    """One field on the wire: its Kafka type, where it exists, where it may be null, and its tag if it has one."""

    type: str
    versions: str
    nullable: str
    tag: int | None

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def element_type(self) -> str:
        return self.type.removeprefix("[]")

    def exists_in(self, version: int) -> bool:
        return version in VersionRange.parse(self.versions)

    def nullable_in(self, version: int) -> bool:
        return version in VersionRange.parse(self.nullable)


# The result stands as the default of a dataclass field of any type, hence Any.
def wire(
    type: str,  # noqa: A002 - Kafka's word for it
    versions: str = "0-",
    *,
    nullable: str = "",
    tag: int | None = None,
    default: Any = MISSING,
    factory: Any = MISSING,
) -> Any:
    """A dataclass field that travels; exactly one of `default` and `factory` gives its value when it does not."""
    metadata = {"wire": Wire(type, versions, nullable, tag)}
    if factory is not MISSING:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Message:
    """What all messages share. Equality and text are here once: generated for hundreds of classes they cost a start."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._field_names())

    # Messages are mutable values.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._field_names())
        return f"{type(self).__name__}({fields})"

    @classmethod
    def _field_names(cls) -> tuple[str, ...]:
        names: tuple[str, ...] = cls.__slots__
        return names


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def message(cls: type[MessageT]) -> type[MessageT]:
    """Make a dataclass of a message class, with as little code generation as possible."""
    # Without a docstring, dataclasses would compose one from the signature, which takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    return dataclasses.dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)(cls)


def wire_fields(message_class: type) -> list[tuple[dataclasses.Field[Any], Wire]]:
    """The fields of a message class in wire order."""
    return [(field, field.metadata["wire"]) for field in dataclasses.fields(message_class)]


def element_class(message_class: type, wire: Wire) -> type | None:
    """The class of a structure field, or None for a primitive; capital letters tell them apart, as in Kafka."""
    name = wire.element_type
    if not name[0].isupper():
        return None
    found = getattr(sys.modules[message_class.__module__], name)
    assert isinstance(found, type)
    return found
