"""`partition.assignment.strategy` as objects: names, Java's class names, classes and objects of the user's."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from penstock.client.consumer.assignors.base import Assignor, RebalanceProtocol
from penstock.client.consumer.assignors.range import RangeAssignor
from penstock.client.consumer.assignors.round_robin import RoundRobinAssignor
from penstock.client.consumer.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from penstock.client.errors import InvalidState

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."

_BUILT_IN: dict[str, Callable[[], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_JAVA_NAMES = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def resolve_assignors(specs: Iterable[object]) -> list[Assignor]:
    """One object each, in the order of preference; `InvalidState` for one that is none or is named twice."""
    assignors = [_resolve(spec) for spec in specs]
    names = [each.name for each in assignors]
    if not assignors:
        raise InvalidState("partition.assignment.strategy is empty: name at least one assignor, such as 'range'.")
    for name in names:
        if names.count(name) > 1:
            raise InvalidState(f"partition.assignment.strategy has two assignors named {name!r}: leave one out.")
    return assignors


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest that all of them know, since any of them may be chosen."""
    common = frozenset(RebalanceProtocol).intersection(*(frozenset(each.protocols) for each in assignors))
    if not common:
        names = ", ".join(each.name for each in assignors)
        raise InvalidState(f"The assignors {names} have no rebalance protocol in common: use them in different groups.")
    return max(common)


def _resolve(spec: object) -> Assignor:
    if isinstance(spec, str):
        return _by_name(spec.strip())
    try:
        found = spec() if isinstance(spec, type) else spec
    except TypeError as error:
        raise InvalidState(
            f"partition.assignment.strategy: an object of {spec!r} cannot be made without arguments ({error}): "
            "give the object itself."
        ) from error
    for need in ("name", "protocols", "assign"):
        if not hasattr(found, need):
            raise InvalidState(
                f"partition.assignment.strategy: {spec!r} has no {need!r}; derive it from penstock's AssignorBase."
            )
    return cast("Assignor", found)


def _by_name(text: str) -> Assignor:
    name = _JAVA_NAMES.get(text.removeprefix(_JAVA_PACKAGE), text.lower())
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    near = difflib.get_close_matches(name, _BUILT_IN, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_BUILT_IN)}."
    raise InvalidState(f"partition.assignment.strategy: there is no assignor {text!r}; {hint}")
