"""Options as Kafka's tools take them (joptsimple, and argparse4j for two of them). Pure.

`--name value`, `--name=value` and the same with one dash; an option may be given several times where it makes sense;
`--` ends the options. Names are not abbreviated, since Kafka's are not. An option with an optional value takes the next
word unless that looks like an option; one with a required value takes the next word whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum


class UsageError(Exception):
    """The command line makes no sense; the message says why."""


class Takes(Enum):
    """What follows an option."""

    NOTHING = "nothing"
    VALUE = "value"
    MAYBE = "maybe a value"
    SEVERAL = "one or more values"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a tool. `refused` says why it cannot be had here, and what to do instead."""

    name: str
    doc: str
    takes: Takes = field(default=Takes.VALUE, kw_only=True)
    metavar: str = field(default="value", kw_only=True)
    default: str | None = field(default=None, kw_only=True)
    repeatable: bool = field(default=False, kw_only=True)
    refused: str = field(default="", kw_only=True)
    short: str = field(default="", kw_only=True)


def flag(name: str, doc: str, *, refused: str = "", short: str = "") -> Option:
    return Option(name, doc, takes=Takes.NOTHING, refused=refused, short=short)


class Parsed:
    """The options of one command line: whether each was given, and its values."""

    def __init__(
        self,
        options: Mapping[str, Option],
        given: Mapping[str, list[str]],
        words: Sequence[str],
        order: Sequence[tuple[str, str | None]] = (),
    ) -> None:
        self._options = options
        self.order = tuple(order)
        """Every option as it was typed, with its value, for those of which the order matters."""
        self._given = dict(given)
        self.known = frozenset(options)
        self.words = tuple(words)
        """What is no option."""

    def has(self, name: str) -> bool:
        assert name in self._options, name
        return name in self._given

    def values(self, name: str) -> list[str]:
        assert name in self._options, name
        return list(self._given.get(name, ()))

    def get(self, name: str) -> str | None:
        """The value, the option's default, or None."""
        found = self._given.get(name)
        if not found:
            return self._options[name].default
        if len(found) > 1 and not self._options[name].repeatable:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        return found[-1]

    def text(self, name: str) -> str:
        """The value of an option that must be there."""
        found = self.get(name)
        if found is None:
            raise UsageError(f'Missing required argument "[{name}]"')
        return found

    def number(self, name: str) -> int | None:
        found = self.get(name)
        if found is None:
            return None
        try:
            return int(found)
        except ValueError:
            raise UsageError(f"Cannot parse argument '{found}' of option {name}") from None

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def exclude(self, name: str, *others: str) -> None:
        """If `name` is given, none of the others may be."""
        if self.has(name):
            for other in others:
                if self.has(other):
                    raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def one_of(self, names: Sequence[str], message: str) -> str:
        """The one of these options that is given."""
        found = [name for name in names if self.has(name)]
        if len(found) != 1:
            raise UsageError(message)
        return found[0]


def parse(options: Iterable[Option], arguments: Sequence[str]) -> Parsed:
    """The options of a command line. Unknown and refused ones raise UsageError."""
    known = {each.name: each for each in options}
    names = {**known, **{each.short: each for each in known.values() if each.short}}
    given: dict[str, list[str]] = {}
    words: list[str] = []
    order: list[tuple[str, str | None]] = []
    rest = list(arguments)
    while rest:
        token = rest.pop(0)
        if token == "--":
            words += rest
            break
        if not _is_option(token):
            words.append(token)
            continue
        name, equals, value = token.lstrip("-").partition("=")
        option = names.get(name)
        if option is None:
            raise UsageError(_unknown(name, known))
        if option.refused:
            raise UsageError(f"--{option.name} is not supported here: {option.refused}")
        values = list(_values(option, value if equals else None, rest))
        given.setdefault(option.name, []).extend(values)
        order.append((option.name, values[0] if values else None))
    return Parsed(known, given, words, order)


def _is_option(token: str) -> bool:
    return token.startswith("-") and token != "-" and not token.lstrip("-")[:1].isdecimal()


def _values(option: Option, attached: str | None, rest: list[str]) -> Iterator[str]:
    if option.takes is Takes.NOTHING:
        if attached is not None:
            raise UsageError(f"Option {option.name} takes no argument, but '{attached}' is given")
        return
    if attached is not None:
        yield attached
    elif option.takes is Takes.VALUE:
        if not rest:
            raise UsageError(f"Option {option.name} requires an argument")
        yield rest.pop(0)
    elif rest and not _is_option(rest[0]):
        yield rest.pop(0)
    elif option.takes is Takes.SEVERAL:
        raise UsageError(f"Option {option.name} requires an argument")
    while option.takes is Takes.SEVERAL and rest and not _is_option(rest[0]):
        yield rest.pop(0)


def _unknown(name: str, known: Mapping[str, Option]) -> str:
    meant = get_close_matches(name, [each for each, option in known.items() if not option.refused], n=1)
    hint = f"; did you mean --{meant[0]}?" if meant else ""
    return f"{name} is not a recognized option{hint}"


def key_values(texts: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` of several options; the value may be empty and may contain `=`."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise UsageError(f"--{option} takes key=value, and '{text}' is not of that form")
        found[key.strip()] = value
    return found


def split_list(text: str) -> list[str]:
    """Comma-separated words; square brackets hold a value with commas together (`k1=v1,k2=[a,b]`)."""
    parts, depth, current = [], 0, ""
    for letter in text:
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        depth += (letter == "[") - (letter == "]")
        current += letter
    parts.append(current)
    return [part.strip() for part in parts if part.strip()]


def joined(values: Iterable[object]) -> str:
    """A list as the tools print it: commas, and no blanks."""
    return ",".join(map(str, values))
