"""Who is told when partitions come and go.

A listener is an object with any of `on_assigned`, `on_revoked` and `on_lost`, each `(consumer, partitions)`, plain or
`async`. They run inside `poll` (or `close`), in the user's thread, and may call the consumer; a commit in `on_revoked`
still counts. Without `on_lost`, `on_revoked` is called for partitions that were lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.base.types import TopicPartition
from penstock.client.errors import InvalidState

Callback = Callable[[Any, Sequence[TopicPartition]], Any]

_METHODS: Final = ("on_assigned", "on_revoked", "on_lost")
_ALIASES: Final = {
    "on_assigned": ("on_assigned", "on_assign", "on_partitions_assigned"),
    "on_revoked": ("on_revoked", "on_revoke", "on_partitions_revoked"),
    "on_lost": ("on_lost", "on_partitions_lost"),
}


class RebalanceListener:
    """A base to derive from; every method may be left as it is, and may be `async`."""

    def on_assigned(self, consumer: Any, partitions: Sequence[TopicPartition]) -> Any:
        """These came in addition to what was there; their positions are not looked up yet, so seek is possible."""

    def on_revoked(self, consumer: Any, partitions: Sequence[TopicPartition]) -> Any:
        """These are about to be given up; they still belong to this member."""

    def on_lost(self, consumer: Any, partitions: Sequence[TopicPartition]) -> Any:
        """These belong to somebody else already: a commit for them would be refused."""
        return self.on_revoked(consumer, partitions)


class CallbackListener:
    """Callables in the shape of a listener; each may be missing."""

    __slots__ = _METHODS

    def __init__(
        self, on_assigned: Callback | None, on_revoked: Callback | None, on_lost: Callback | None = None
    ) -> None:
        self.on_assigned = on_assigned
        self.on_revoked = on_revoked
        self.on_lost = on_lost or on_revoked


def make_listener(
    listener: object | None = None,
    *,
    on_assign: Callback | None = None,
    on_revoke: Callback | None = None,
    on_lost: Callback | None = None,
) -> CallbackListener | None:
    """A listener object, a mapping of callables, or the callables themselves; None when there is nothing to tell."""
    given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
    for name, function in given.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} is a function of the consumer and its partitions, not {function!r}")
    if listener is None:
        return CallbackListener(*given.values()) if any(given.values()) else None
    if any(given.values()):
        raise InvalidState("subscribe() takes a listener or on_assign, on_revoke and on_lost, not both.")
    if isinstance(listener, CallbackListener):
        return listener
    found = [_find(listener, method) for method in _METHODS]
    if not any(found):
        raise InvalidState(f"{listener!r} is no rebalance listener: it needs at least one of {', '.join(_METHODS)}.")
    return CallbackListener(*found)


def _find(listener: object, method: str) -> Callback | None:
    for name in _ALIASES[method]:
        found = listener.get(name) if isinstance(listener, Mapping) else getattr(listener, name, None)
        if found is None:
            continue
        if not callable(found):
            raise InvalidState(f"{name} of the rebalance listener cannot be called: it is {found!r}.")
        return found  # type: ignore[no-any-return]
    return None
