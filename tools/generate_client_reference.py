"""Print docs/client-reference.md: every name of `penstock`, from signatures and docstrings.

python tools/generate_client_reference.py > docs/client-reference.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, is_typeddict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from describing import Member, example, fields, literal, members, short_names, signature, summary, texts_of_members
from markdown import cell

import penstock
import penstock.aio

NAMES: list[str] = vars(penstock)["__all__"]

INTRODUCTION = """\
# Reference of the Python clients

Printed from signatures and docstrings by `python tools/generate_client_reference.py`; change the code, not this page.
[clients.md](clients.md) is the guide, [client-configuration.md](client-configuration.md) has the settings, and
`help(penstock.Producer)` has the whole texts.

All names are in `penstock`. The blocking classes are shown; `penstock.aio` has the same names for asyncio with the same
methods, and the mark behind a method says how it is used there: *await* is a coroutine, *async for* an asynchronous
generator, *async with* an asynchronous context manager; without a mark it is called as here. What has a `close` is a
context manager too (`with`, in `penstock.aio` `async with`).

The settings of a client are a dict of Kafka's keys, or keywords (`linger_ms=20`), or both.
"""

SECTIONS = {
    "Producer": ("penstock.client.producer.",),
    "Consumer": (
        "penstock.client.consumer.blocking",
        "penstock.records.",
        "penstock.client.consumer.records",
        "penstock.client.consumer.",
    ),
    "Offset stores": ("penstock.client.consumer.offset_stores.",),
    "Message streams": ("penstock.client.consumer.streams.",),
    "Parallel consumption": ("penstock.client.consumer.parallel.",),
    "Administration": ("penstock.client.admin.",),
    "Values of all clients": ("penstock.base.types", "penstock.client.core.types"),
    "Configuration": ("penstock.client.config.", "penstock.base.config."),
}
"""Titles, and the modules whose names stand there; of several that fit, the longest."""

CLIENTS = ("Producer", "Consumer", "MessageStreams", "MessageStream", "ParallelConsumer", "Admin")
"""They have two faces, and stand first in their sections."""

GIVEN = ("BatchDelivery", "ClientConfig", "ConsumerRecords", "Delivery", "MessageStream")
"""What clients give and nobody makes: constructors are left out."""

NOUNS = {
    "Topics and records": "topics topic_descriptions offsets",
    "Configurations": "configs",
    "The cluster": "cluster",
    "Replicas": "log_dirs reassignments",
    "Groups": "groups group_offsets",
    "Transactions and producers": "transactions producers hanging",
    "Security and quotas": "acls users quotas",
    "The client itself": "",
}
"""The methods of `Admin` by the modules that they come from."""


def page() -> Iterator[str]:
    public = {name: getattr(penstock, name) for name in NAMES if name != "__version__"}
    errors = {name: value for name, value in public.items() if inspect.isclass(value) and issubclass(value, Exception)}
    by_title: dict[str, list[str]] = {title: [] for title in SECTIONS}
    for name in public:
        if name not in errors and name != "ErrorCode":
            by_title[section_of(public[name])].append(name)
    yield INTRODUCTION
    yield " · ".join(f"[{title}](#{title.lower().replace(' ', '-')})" for title in (*SECTIONS, "Errors"))
    for title, names in by_title.items():
        yield from section(title, sorted(names, key=lambda name: order(name, public[name])))
    yield from errors_section(errors)
    yield "\n`penstock.__version__` is the version of the package."


def section_of(value: Any) -> str:
    """The title of the section that a name stands in."""
    fitting = [
        (len(prefix), title)
        for title, prefixes in SECTIONS.items()
        for prefix in prefixes
        if value.__module__.startswith(prefix)
    ]
    if not fitting:
        raise LookupError(f"no section has {value.__module__}.{value.__name__}: add the module to SECTIONS")
    return max(fitting)[1]


def order(name: str, value: Any) -> tuple[int, str]:
    """Clients, other classes, enumerations, functions; by name."""
    if name in CLIENTS:
        return CLIENTS.index(name) - len(CLIENTS), ""
    if not inspect.isclass(value):
        return 2, name
    return int(issubclass(value, Enum)), name


def section(title: str, names: Iterable[str]) -> Iterator[str]:
    yield f"\n## {title}"
    meanings: dict[str, str] = {}
    for name in names:
        value = getattr(penstock, name)
        if inspect.isclass(value):
            yield from enumeration(value) if issubclass(value, Enum) else class_(value)
            meanings |= names_within(value)
        else:
            yield f"\n### {name}\n\n`{signature(name, value)}`\n\n{summary(value)}"
            meanings |= short_names(signature(name, value), value.__module__)
    if meanings:
        yield "\nShort names in these signatures:\n"
        yield from (f"- `{short}` is `{meant}`" for short, meant in sorted(meanings.items()))


def names_within(owner: type) -> dict[str, str]:
    """The short names in the signatures of a class's public members."""
    found: dict[str, str] = {}
    functions = [(member.name, member.function) for member in members(owner)]
    if is_made_by_users(owner):
        functions.append(("__init__", constructor_of(owner).__init__))  # type: ignore[misc]
    for name, function in functions:
        found |= short_names(signature(name, function), inspect.unwrap(function).__module__)
    for annotation, _ in fields(owner).values() if has_fields(owner) else ():
        found |= short_names(annotation, owner.__module__)
    return found


# Classes.


def class_(owner: type) -> Iterator[str]:
    name = owner.__name__
    yield f"\n### {name}\n\n{summary(constructor_of(owner))}"
    if is_typeddict(owner):
        return
    if has_fields(owner):
        yield from field_list(owner)
    elif is_made_by_users(owner):
        told = signature(name, constructor_of(owner).__init__)  # type: ignore[misc]
        yield f"\n```python\n{told.replace('AsyncConsumer', 'Consumer')}\n```"
    if shown := example(owner):
        yield f"\n```python\n{shown}\n```"
    yield from admin_methods(owner) if name == "Admin" else method_list(owner, members(owner))


def is_made_by_users(owner: type) -> bool:
    """Whether there is a constructor to show."""
    init = owner.__init__  # type: ignore[misc]
    is_plain = inspect.isfunction(init) and not getattr(owner, "_is_protocol", False)
    return is_plain and owner.__name__ not in GIVEN and signature("", init) != "()"


def constructor_of(owner: type) -> type:
    """The class that says what the constructor takes: of parallel consumption that is the asyncio one."""
    return penstock.aio.ParallelConsumer if owner is penstock.ParallelConsumer else owner


def has_fields(owner: type) -> bool:
    return hasattr(owner, "__dataclass_fields__") or hasattr(owner, "_fields")


def field_list(owner: type) -> Iterator[str]:
    for number, (name, (told, text)) in enumerate(fields(owner).items()):
        yield from ("",) if number == 0 else ()
        yield f"- `{name}: {told}`" + (f": {text}" if text else "")


def admin_methods(owner: type) -> Iterator[str]:
    nouns = {noun: title for title, modules in NOUNS.items() for noun in modules.split()}
    by_title: dict[str, list[Member]] = {title: [] for title in NOUNS}
    for member in members(owner):
        noun = inspect.unwrap(member.function).__module__.rpartition(".")[2]
        by_title[nouns.get(noun, "The client itself")].append(member)
    for title, group in by_title.items():
        yield f"\n{title}:"
        yield from method_list(owner, group)


def method_list(owner: type, group: Iterable[Member]) -> Iterator[str]:
    for number, member in enumerate(group):
        yield from ("",) if number == 0 else ()
        yield f"- {method(owner, member)}"


def method(owner: type, member: Member) -> str:
    if member.is_property:
        return f"`{member.name}: {member.annotation}`: {summary(member.function)}"
    told = signature(member.name, member.function)
    own_name = getattr(member.function, "__name__", member.name)
    if own_name != member.name and hasattr(owner, own_name):
        return f"`{told.partition('(')[0]}`: another name of `{own_name}`."
    text = summary(getattr(owner, member.name))
    mark = use_in_asyncio(getattr(penstock.aio, owner.__name__), member.name) if owner.__name__ in CLIENTS else ""
    return f"`{told}`{mark}: {text}"


def use_in_asyncio(owner: type, name: str) -> str:
    function = getattr(owner, name, None)
    if function is None:
        return " (not in `penstock.aio`)"
    marks: tuple[tuple[Callable[[Any], bool], str], ...] = (
        (inspect.iscoroutinefunction, " *await*"),
        (inspect.isasyncgenfunction, " *async for*"),
        (lambda it: inspect.isasyncgenfunction(inspect.unwrap(it)), " *async with*"),
    )
    return next((mark for is_so, mark in marks if is_so(function)), "")


def enumeration(owner: type[Enum]) -> Iterator[str]:
    texts = texts_of_members(owner)
    yield f"\n### {owner.__name__}\n\n{summary(owner)}\n"
    if any(texts.values()):
        for member in owner:
            text = f": {texts[member.name]}" if texts.get(member.name) else ""
            yield f"- `{member.name}` = {literal(member.value)}{text}"
    else:
        yield ", ".join(f"`{member.name}` = {literal(member.value)}" for member in owner)


# Errors.


def errors_section(errors: dict[str, Any]) -> Iterator[str]:
    yield "\n## Errors\n"
    yield "All but `ConfigErrors` derive from `KafkaError`, which has `code` (an `ErrorCode`), `message`, `retriable`,"
    yield "`abortable` and `fatal`; [the guide](clients.md#errors) says what to do about each.\n"
    yield "| error | derives from | its `code`, unless a broker told one | what it means |\n|---|---|---|---|"
    for name, error in errors.items():
        bases = ", ".join(f"`{public_base(base)}`" for base in error.__bases__)
        default = getattr(error, "default_code", None)
        yield f"| `{name}` | {bases} | {'' if default is None else f'`{default.name}`'} | {kinds(error)} |"
    yield f"\n### ErrorCode\n\n{summary(penstock.ErrorCode)}\n"
    yield ", ".join(f"`{member.name}` = {member.value}" for member in penstock.ErrorCode)


def public_base(base: type) -> str:
    """The name of the class, or of the nearest above it that is public."""
    names = (each.__name__ for each in base.__mro__ if each.__module__ == "builtins" or each.__name__ in NAMES)
    return next(names)


def kinds(error: Any) -> str:
    words = [word for word in ("abortable", "fatal") if getattr(error, word, False) is True]
    return cell(summary(error)) + (f" *{', '.join(words).capitalize()}.*" if words else "")


def main() -> None:
    print("\n".join(page()))


if __name__ == "__main__":
    main()
