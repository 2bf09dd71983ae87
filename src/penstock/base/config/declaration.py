"""What a configuration key is: `Key[T]`, the value types of Kafka, and the rules a value must obey.

A key is declared once, as a constant, through one of the small constructors at the end (`integer`, `string`, ...).
The type parameter carries the Python type of the value, so `config[keys.NUM_PARTITIONS]` is an `int` to a type
checker. `None` as default makes the value optional.

Text goes in through `Key.parse` and comes out through `Key.format`, both by Kafka's own rules, so that a value printed
by DescribeConfigs is the text that Kafka would print.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final, Generic, TypeVar, cast, overload

from penstock.base.config.rules import BadValueError, Range, Rule
from penstock.base.config.text import format_double

T = TypeVar("T")


class ValueType(IntEnum):
    """Kafka's value types; the number is the type code of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    BROKER = "broker"
    TOPIC = "topic"


class UpdateMode(Enum):
    """Whether a broker key can change while the broker runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


TOPIC: Final = Scope.TOPIC
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a configuration, for people."""

    key: str
    reason: str
    value: str | None = None
    origin: str = ""
    """Where the value was set: `file:line`, a variable, a flag."""

    def __str__(self) -> str:
        what = self.key if self.value is None else f"{self.key}={self.value}"
        where = f" ({self.origin})" if self.origin else ""
        return f"{what}{where}: {self.reason}"


class ConfigErrors(Exception):  # noqa: N818 - several errors at once
    """Every problem of a configuration, together."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        title = "the configuration has a problem" if count == 1 else f"the configuration has {count} problems"
        super().__init__("\n".join([f"{title}:", *(f"  {problem}" for problem in self.problems)]))


class Password:
    """A secret. Only `value` shows it; text, representation and logs show `[hidden]`."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker key that gives a topic key its value; `factor` turns the broker key's unit into the topic key's."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Key(Generic[T]):
    name: str
    type: ValueType
    default: T
    doc: str
    rule: Rule | None = None
    scope: Scope = Scope.BROKER
    update: UpdateMode = UpdateMode.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    """Topic keys: the broker keys that are asked when the topic sets nothing, in order."""
    effect: str = ""
    """Why the key does nothing here; empty for a key that works."""
    internal: bool = False
    """Accepted, but not listed by DescribeConfigs unless it is set: a door for tests."""

    @property
    def sensitive(self) -> bool:
        return self.type is ValueType.PASSWORD

    def parse(self, text: str) -> T:
        """The value that `text` means; BadValueError says why it means none."""
        value = _PARSERS[self.type](text.strip())
        if self.rule is not None:
            self.rule.check(value)
        return cast("T", value)

    def format(self, value: T) -> str | None:
        """The text Kafka prints for a value; None for an absent one and for a secret."""
        return None if self.sensitive else format_value(value)

    @property
    def allowed(self) -> str:
        """What a value may be, for people."""
        words = _TYPE_WORDS[self.type]
        return words if self.rule is None else f"{words}, {self.rule.words}"


def format_value(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_double(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise BadValueError("Expected value to be either true or false")
    return lowered == "true"


_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")


def _integer_parser(name: str, bits: int) -> Any:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        # int() would also take underscores and digits of other scripts.
        if _INTEGER.fullmatch(text) and -limit <= (value := int(text)) < limit:
            return value
        raise BadValueError(f"Not a number of type {name}")

    return parse


def _parse_double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise BadValueError("Not a number of type DOUBLE")
    return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)


def _parse_list(text: str) -> tuple[str, ...]:
    """Words between commas. A word said twice counts once (KIP-1161); an empty one is an error."""
    parts = dict.fromkeys(re.split(r"\s*,\s*", text)) if text else {}
    if "" in parts:
        raise BadValueError("values must not be empty")
    return tuple(parts)


_PARSERS: dict[ValueType, Any] = {
    ValueType.BOOLEAN: _parse_boolean,
    ValueType.STRING: str,
    ValueType.INT: _integer_parser("INT", 32),
    ValueType.SHORT: _integer_parser("SHORT", 16),
    ValueType.LONG: _integer_parser("LONG", 64),
    ValueType.DOUBLE: _parse_double,
    ValueType.LIST: _parse_list,
    ValueType.CLASS: str,
    ValueType.PASSWORD: Password,
}

_TYPE_WORDS = {
    ValueType.BOOLEAN: "true or false",
    ValueType.STRING: "text",
    ValueType.INT: "a 32-bit integer",
    ValueType.SHORT: "a 16-bit integer",
    ValueType.LONG: "a 64-bit integer",
    ValueType.DOUBLE: "a number",
    ValueType.LIST: "a comma-separated list",
    ValueType.CLASS: "a class name",
    ValueType.PASSWORD: "a secret text",
}


# Constructors. `**rest` are the fields of Key that are seldom given: rule, update, synonyms, effect, internal, scope.


def boolean(name: str, default: bool, doc: str, **rest: Any) -> Key[bool]:
    return Key(name=name, type=ValueType.BOOLEAN, default=default, doc=doc, **rest)


def double(
    name: str, default: float, doc: str, *, at_least: float | None = None, at_most: float | None = None, **rest: Any
) -> Key[float]:
    return Key(name=name, type=ValueType.DOUBLE, default=default, doc=doc, **_ranged(at_least, at_most, rest))


@overload
def integer(
    name: str, default: int, doc: str, *, at_least: int | None = ..., at_most: int | None = ..., **rest: Any
) -> Key[int]: ...
@overload
def integer(
    name: str, default: None, doc: str, *, at_least: int | None = ..., at_most: int | None = ..., **rest: Any
) -> Key[int | None]: ...
def integer(
    name: str, default: int | None, doc: str, *, at_least: int | None = None, at_most: int | None = None, **rest: Any
) -> Key[int] | Key[int | None]:
    return Key(name=name, type=ValueType.INT, default=default, doc=doc, **_ranged(at_least, at_most, rest))


def short(
    name: str, default: int, doc: str, *, at_least: int | None = None, at_most: int | None = None, **rest: Any
) -> Key[int]:
    return Key(name=name, type=ValueType.SHORT, default=default, doc=doc, **_ranged(at_least, at_most, rest))


@overload
def long(
    name: str, default: int, doc: str, *, at_least: int | None = ..., at_most: int | None = ..., **rest: Any
) -> Key[int]: ...
@overload
def long(
    name: str, default: None, doc: str, *, at_least: int | None = ..., at_most: int | None = ..., **rest: Any
) -> Key[int | None]: ...
def long(
    name: str, default: int | None, doc: str, *, at_least: int | None = None, at_most: int | None = None, **rest: Any
) -> Key[int] | Key[int | None]:
    return Key(name=name, type=ValueType.LONG, default=default, doc=doc, **_ranged(at_least, at_most, rest))


@overload
def string(name: str, default: str, doc: str, **rest: Any) -> Key[str]: ...
@overload
def string(name: str, default: None, doc: str, **rest: Any) -> Key[str | None]: ...
def string(name: str, default: str | None, doc: str, **rest: Any) -> Key[str] | Key[str | None]:
    return Key(name=name, type=ValueType.STRING, default=default, doc=doc, **rest)


@overload
def words(name: str, default: tuple[str, ...], doc: str, **rest: Any) -> Key[tuple[str, ...]]: ...
@overload
def words(name: str, default: None, doc: str, **rest: Any) -> Key[tuple[str, ...] | None]: ...
def words(
    name: str, default: tuple[str, ...] | None, doc: str, **rest: Any
) -> Key[tuple[str, ...]] | Key[tuple[str, ...] | None]:
    return Key(name=name, type=ValueType.LIST, default=default, doc=doc, **rest)


def class_name(name: str, default: str | None, doc: str, **rest: Any) -> Key[str | None]:
    return Key(name=name, type=ValueType.CLASS, default=default, doc=doc, **rest)


def password(name: str, doc: str, **rest: Any) -> Key[Password | None]:
    return Key(name=name, type=ValueType.PASSWORD, default=None, doc=doc, **rest)


def _ranged(at_least: float | None, at_most: float | None, rest: dict[str, Any]) -> dict[str, Any]:
    if at_least is not None or at_most is not None:
        rest["rule"] = Range(at_least, at_most)
    return rest
