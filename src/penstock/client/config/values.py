"""Constructors for the two kinds of key that a broker's configuration does not have: an object, and a list of objects.

Java names a class in text; here the value is the object itself, its class, or the text of a well-known Java class,
which the part that uses the key translates.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.base.config.declaration import Key, ValueType


class AnyObject:
    """Marks a key whose values may be objects."""

    __slots__ = ()
    words = "or an object"

    def check(self, value: Any) -> None:
        """Whoever uses the object knows what it must be able to do."""


ANY_OBJECT: Final = AnyObject()


def an_object(name: str, default: Any, doc: str, **rest: Any) -> Key[Any]:
    return Key(name=name, type=ValueType.CLASS, default=default, doc=doc, rule=ANY_OBJECT, **rest)


def objects(name: str, default: tuple[Any, ...], doc: str, **rest: Any) -> Key[tuple[Any, ...]]:
    return Key(name=name, type=ValueType.LIST, default=default, doc=doc, rule=ANY_OBJECT, **rest)
