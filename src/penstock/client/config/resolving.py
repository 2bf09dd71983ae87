"""Keys whose values are objects, checked when a client is made: every problem is reported at once, by its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.base.config.declaration import ConfigErrors, Key, Problem
from penstock.base.errors import KafkaError

T = TypeVar("T")


class Resolving:
    """Call `value` for each key, then `check`::

    resolving = Resolving()
    serializer = resolving.value(keys.KEY_SERIALIZER, lambda: resolve_serializer(spec), default_serialize)
    resolving.check()
    """

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def value(self, key: Key[Any], make: Callable[[], T], otherwise: T) -> T:
        """What `make` gives; `otherwise` if it refuses the value with a KafkaError, which `check` will tell."""
        try:
            return make()
        except KafkaError as error:
            self._problems.append(Problem(key=key.name, reason=error.message.removeprefix(f"{key.name}: ")))
            return otherwise

    def check(self) -> None:
        if self._problems:
            raise ConfigErrors(self._problems)
