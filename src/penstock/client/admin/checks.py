"""Input of the administration client, checked before anything is sent: a wrong type is told by name, not by a codec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from penstock.base.types import TopicPartition
from penstock.client.admin.errors import InvalidInput

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

INT32_MAX = 2**31 - 1


def items(values: object, what: str) -> list[Any]:
    """The things of a list, which must not be empty. One text is one thing."""
    if isinstance(values, str | bytes):
        values = [values]
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"a list of {what} is wanted, not {shown(values)}")
    found = list(values)
    if not found:
        raise InvalidInput(f"the list of {what} is empty: name at least one")
    return list(dict.fromkeys(found)) if all(_is_hashable(each) for each in found) else found


def names(values: object, what: str) -> list[str]:
    """Texts that are not empty, each once."""
    return [name(each, what) for each in items(values, what)]


def name(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} are named by text, not by {shown(value)}")
    if not value:
        raise InvalidInput(f"{what}: a name is empty")
    return value


def mapping(values: object, what: str) -> dict[Any, Any]:
    if not isinstance(values, Mapping):
        raise InvalidInput(f"a mapping of {what} is wanted, not {shown(values)}")
    if not values:
        raise InvalidInput(f"the mapping of {what} is empty: name at least one")
    return dict(values)


def partitions(values: object) -> list[TopicPartition]:
    return [partition(each) for each in items(values, "partitions")]


def partition(value: object) -> TopicPartition:
    """A TopicPartition, or a pair that looks like one."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0]:
        return TopicPartition(value[0], number(value[1], f"the partition of topic {value[0]}"))
    raise InvalidInput(f"a partition is a pair of topic and number, TopicPartition('topic', 0), not {shown(value)}")


def number(value: object, what: str, *, at_least: int = 0, at_most: int = INT32_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{what} is a whole number, not {shown(value)}")
    if not at_least <= value <= at_most:
        raise InvalidInput(f"{what} is {value}: it must be from {at_least} to {at_most}")
    return int(value)


def numbers(values: object, what: str) -> list[int]:
    return [number(each, what) for each in items(values, what)]


def instance(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} is given as {kind.__name__}, not {shown(value)}")
    return value


def member(value: object, kind: type[E], what: str) -> E:
    """A member of an enumeration, itself or by its name or value, in any case."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        wanted = _plain(value)
        for each in kind:
            if wanted in (_plain(each.name), _plain(str(each.value))):
                return each
    known = ", ".join(each.name.lower() for each in kind)
    raise InvalidInput(f"{what} is one of {known}, not {shown(value)}")


def shown(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"


def _plain(text: str) -> str:
    return text.lower().replace("-", "").replace("_", "").replace(" ", "")


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
