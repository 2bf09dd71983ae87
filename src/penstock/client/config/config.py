"""One client's configuration: from a mapping of Kafka's keys, from keywords, or from both; checked as a whole.

Text is read by Kafka's rules, so a properties file's values work; numbers, booleans, lists and objects may be given as
themselves. Every problem is reported at once (`ConfigErrors`). What works but does nothing (keys without effect, keys
that nobody knows) is a warning in the log; an unknown keyword is a programming error and raises TypeError.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any, Final, TypeVar

from penstock.base.config.declaration import ConfigErrors, Key, Password, Problem, ValueType
from penstock.base.config.rules import BadValueError
from penstock.base.config.text import closest
from penstock.client.config import admin_keys, consumer_keys, producer_keys
from penstock.client.config.cautions import cautions
from penstock.client.config.checks import adjust, problems_together
from penstock.client.config.foreign import hint_of
from penstock.client.config.values import ANY_OBJECT

log = logging.getLogger(__name__)
T = TypeVar("T")


class ClientKind(Enum):
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


def _keys_of(module: ModuleType) -> dict[str, Key[Any]]:
    return {key.name: key for key in vars(module).values() if isinstance(key, Key)}


KEYS: Final[Mapping[ClientKind, Mapping[str, Key[Any]]]] = {
    ClientKind.PRODUCER: _keys_of(producer_keys),
    ClientKind.CONSUMER: _keys_of(consumer_keys),
    ClientKind.ADMIN: _keys_of(admin_keys),
}
_ALIASES: Final = {
    # Our own keys by short names, and other clients' names for Kafka's.
    "offset.store": "penstock.offset.store",
    "prefetch.bytes": "penstock.prefetch.bytes",
    "partitioner": "partitioner.class",
    "interceptors": "interceptor.classes",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedKey:
    """One line of `ClientConfig.describe()`."""

    name: str
    value: str | None
    """As text; None for a secret and for an absent value."""
    is_default: bool
    doc: str


class ClientConfig:
    """Values by key: `config[producer_keys.LINGER_MS]`. Immutable."""

    __slots__ = ("_given", "_values", "kind", "warnings")

    def __init__(
        self,
        kind: ClientKind,
        config: Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.kind = kind
        _check_mapping(kind, config, options or {})
        settings, unknown = _settings(kind, config or {}, options or {})
        problems: list[Problem] = []
        values = {key.name: key.default for key in KEYS[kind].values()}
        for key, given in settings.items():
            try:
                values[key.name] = read_value(key, given)
            except BadValueError as error:
                problems.append(Problem(key=key.name, reason=_worded(key, error), value=_shown(key, given)))
        self._given = frozenset(key.name for key in settings)
        adjust(values, self._given)
        problems += problems_together(values, self._given)
        if problems:
            # The key that is missing may be there under a name that nobody knows.
            raise ConfigErrors([*problems, *unknown])
        self._values: dict[str, Any] = values
        self.warnings = (
            *(f"{each.key} {each.reason}" for each in unknown),
            *_without_effect(settings, values),
            *cautions(values, self._given),
        )
        for warning in self.warnings:
            log.warning(warning)

    def __getitem__(self, key: Key[T], /) -> T:
        value: T = self._values[key.name]
        return value

    def get(self, key: Key[T], default: T, /) -> T:
        """For a key that not every kind of client has."""
        value: T = self._values.get(key.name, default)
        return value

    def is_given(self, key: Key[Any]) -> bool:
        """Whether the user set the key, to whatever value."""
        return key.name in self._given

    def replaced(self, values: Mapping[Key[Any], Any]) -> ClientConfig:
        """A copy with other values, which are taken as they are."""
        copy = object.__new__(ClientConfig)
        copy.kind, copy.warnings, copy._given = self.kind, self.warnings, self._given
        copy._values = {**self._values, **{key.name: value for key, value in values.items()}}
        return copy

    def describe(self) -> dict[str, DescribedKey]:
        """Every key with its value, by name; secrets stay hidden."""
        return {
            name: DescribedKey(
                name=name,
                value=key.format(self._values[name]),
                is_default=self._values[name] == key.default,
                doc=key.doc,
            )
            for name, key in sorted(KEYS[self.kind].items())
            if not key.internal
        }

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={self._values[name]!r}" for name in sorted(self._given))
        return f"ClientConfig({self.kind.value}: {given})"


def read_value(key: Key[T], given: object) -> T:
    """The value that `given` means; BadValueError says why it means none."""
    value: Any
    if given is None:
        value = key.default
    elif key.rule is ANY_OBJECT:
        value = _objects(given) if key.type is ValueType.LIST else given
    elif isinstance(given, Password):
        value = given if key.type is ValueType.PASSWORD else key.parse(given.value)
    elif key.type is ValueType.LIST and not isinstance(given, str):
        value = key.parse(",".join(_words(given)))
    else:
        value = key.parse(_text(key, given))
    result: T = value
    return result


def _objects(given: object) -> tuple[Any, ...]:
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return tuple(given) if isinstance(given, (list, tuple, set, frozenset)) else (given,)


def _words(given: object) -> Iterator[str]:
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise BadValueError("must be text or a list of texts")
    for word in given:
        if not isinstance(word, str):
            raise BadValueError(f"must be a list of texts, and {word!r} is none")
        yield word


def _text(key: Key[Any], given: object) -> str:
    if isinstance(given, bool):
        if key.type is ValueType.BOOLEAN:
            return "true" if given else "false"
    elif isinstance(given, (str, int)):
        return str(given)
    elif isinstance(given, float):
        return str(int(given)) if given.is_integer() and key.type is not ValueType.DOUBLE else repr(given)
    elif isinstance(given, Enum):
        return str(given.value)
    elif hasattr(given, "__fspath__"):
        return str(given)
    raise BadValueError(f"must be {key.allowed}, not {type(given).__name__}")


def _shown(key: Key[Any], given: object) -> str:
    return "[hidden]" if key.sensitive else str(given)


_NUMBERS: Final = (ValueType.SHORT, ValueType.INT, ValueType.LONG)
_UNITS: Final = {"ms": " of milliseconds", "seconds": " of seconds", "bytes": " of bytes"}


def _worded(key: Key[Any], error: BadValueError) -> str:
    """Why a value is none. Of numbers, brokers say it in Kafka's words, which name Java's types."""
    if key.type not in _NUMBERS or not error.reason.startswith("Not a number"):
        return error.reason
    return f"must be a whole number{_UNITS.get(key.name.rpartition('.')[2], '')} ({key.allowed})"


_CLIENT: Final = {
    ClientKind.PRODUCER: "a producer",
    ClientKind.CONSUMER: "a consumer",
    ClientKind.ADMIN: "an admin client",
}
_TOPICS_GO_TO: Final = {
    ClientKind.PRODUCER: "a topic is given to send()",
    ClientKind.CONSUMER: "topics are given to subscribe()",
    ClientKind.ADMIN: "topics are given to its methods",
}


def _check_mapping(kind: ClientKind, config: object, options: Mapping[str, object]) -> None:
    named, a_client = kind.value.title(), _CLIENT[kind]
    if isinstance(config, Mapping):
        for name in config:
            if not isinstance(name, str):
                raise TypeError(f"the keys of {a_client} are text such as 'client.id', not {name!r}")
        return
    if config is None:
        return
    what = f"the first argument of {a_client} is a mapping of Kafka's keys, not"
    if isinstance(config, str) and (":" not in config or "bootstrap_servers" in options):
        raise TypeError(
            f"{what} {config!r}: write {named}(bootstrap_servers='host:9092') to say where the brokers are; "
            f"{_TOPICS_GO_TO[kind]}"
        )
    given = config if isinstance(config, str) else "host:9092"
    raise TypeError(
        f"{what} {type(config).__name__}: write {named}(bootstrap_servers={given!r}) or "
        f"{named}({{'bootstrap.servers': {given!r}}})"
    )


def _settings(
    kind: ClientKind, config: Mapping[str, object], options: Mapping[str, object]
) -> tuple[dict[Key[Any], object], list[Problem]]:
    """The known keys that are given, keywords over the mapping, and what there is to say of each unknown one."""
    keys = KEYS[kind]
    settings: dict[Key[Any], object] = {}
    unknown: list[Problem] = []
    for name, value in config.items():
        key = known_key(kind, name) or known_key(kind, name.replace("_", "."))
        if key is not None:
            settings[key] = value
        else:
            unknown.append(_unknown(kind, name, keys))
    for option, value in options.items():
        key = known_key(kind, option.replace("_", "."))
        if key is None:
            raise TypeError(_unexpected(kind, option, keys))
        settings[key] = value
    return settings, unknown


def known_key(kind: ClientKind, name: str) -> Key[Any] | None:
    """The key of this name, or of which it is another client's name; None when this kind of client has none such."""
    keys = KEYS[kind]
    return keys.get(name) or keys.get(_ALIASES.get(name, ""))


def _unknown(kind: ClientKind, name: str, keys: Mapping[str, Key[Any]]) -> Problem:
    meant = _meant(kind, name, keys)
    hint = f"; {meant}" if meant else ""
    return Problem(key=name, reason=f"is not a key of {_CLIENT[kind]} and is ignored{hint}")


def _unexpected(kind: ClientKind, option: str, keys: Mapping[str, Key[Any]]) -> str:
    # Keys in the hint become keywords too.
    meant = re.sub(r"[a-z0-9.]+[a-z0-9]", lambda word: _keyword(word[0], keys), _meant(kind, option, keys))
    hint = f": {meant}" if meant else ""
    return f"{_CLIENT[kind]} has no option {option!r}{hint}"


def _keyword(word: str, keys: Mapping[str, Key[Any]]) -> str:
    return word.replace(".", "_") if word in keys else word


def _meant(kind: ClientKind, name: str, keys: Mapping[str, Key[Any]]) -> str:
    """What to write in place of an unknown name."""
    dotted = name.replace("_", ".")
    hint = hint_of(dotted, keys, _CLIENT[kind])
    if hint:
        return hint
    nearest = closest(dotted, keys)
    return f"did you mean {nearest}?" if nearest else ""


def _without_effect(settings: Mapping[Key[Any], object], values: Mapping[str, Any]) -> Iterator[str]:
    for key in settings:
        if key.effect and values[key.name] != key.default:
            yield f"{key.name} has no effect: {key.effect}"
