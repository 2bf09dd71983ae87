"""Tools whose first word is a command (`kafka-transactions list`), each with options of its own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from penstock.cli.kafka.parsing import Parsed, UsageError

R = TypeVar("R", bound=Callable[..., object])
_COMMON: Final = ("bootstrap-server", "command-config")


@dataclass(frozen=True, slots=True)
class Command(Generic[R]):
    """What a command does, and which options it takes beside the common ones."""

    run: R
    options: tuple[str, ...] = ()


def chosen(options: Parsed, commands: Mapping[str, Command[R]]) -> R:
    """What the command of a command line does. Words and options that do not belong to it raise UsageError."""
    if not options.words:
        raise UsageError(f"Which command? There are {', '.join(commands)}")
    name, *rest = options.words
    if name not in commands:
        raise UsageError(f"invalid choice: '{name}' (choose from {', '.join(commands)})")
    if rest:
        raise UsageError(f"unrecognized arguments: '{' '.join(rest)}'")
    allowed = commands[name].options
    for option, _ in options.order:
        if option not in (*allowed, *_COMMON):
            takes = f"it takes {', '.join('--' + each for each in allowed)}" if allowed else "it takes none"
            raise UsageError(f"{name} takes no --{option}; {takes}")
    return commands[name].run


def synopsis(commands: Mapping[str, Command[R]]) -> str:
    """How the commands are shown in a tool's help."""
    return "<" + " | ".join(commands) + ">"
