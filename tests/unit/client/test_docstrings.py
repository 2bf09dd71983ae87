"""`help()` says something about every public name, and about every public method and property of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import penstock
import penstock.aio


def undocumented(owner: type) -> Iterator[str]:
    """Public functions and properties without a text, of the class and of bases that are ours."""
    for base in owner.__mro__:
        if not base.__module__.startswith("penstock"):
            continue
        for name, member in vars(base).items():
            is_method = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
            if is_method and not name.startswith("_") and not inspect.getdoc(getattr(owner, name)):
                yield f"{owner.__name__}.{name}"


@pytest.mark.parametrize("module", [penstock, penstock.aio], ids=["penstock", "penstock.aio"])
def test_every_public_name_has_a_docstring(module: object) -> None:
    missing: list[str] = []
    for name in penstock.__all__:
        value = getattr(module, name, None)
        if value is None or isinstance(value, str):
            continue
        # A dataclass without a text gets its signature, which says nothing; a subclass needs a text of its own.
        text = value.__doc__
        if not text or text.startswith(f"{name}("):
            missing.append(name)
        if inspect.isclass(value):
            missing += undocumented(value)
    assert sorted(set(missing)) == []


@pytest.mark.parametrize("admin", [penstock.Admin, penstock.aio.Admin])
def test_help_shows_the_parameters_of_administration(admin: type) -> None:
    """It showed `asker`, which no user ever passes."""
    parameters = list(inspect.signature(admin.create_topics).parameters)  # type: ignore[attr-defined]
    assert parameters[:2] == ["self", "topics"]
