"""TRANSFORM, FILTER and REDUCE: a lambda applied to every element or entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from penstock.sql.functions.model import LambdaText
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import Map, SqlType

_lambda = partial(scalar, "LAMBDA", strict=False)

Collection = list[Any] | dict[Any, Any] | None


def _transform(collection: Collection, first: Callable[..., Any], second: Callable[..., Any] | None = None) -> Any:
    if isinstance(collection, dict) and second is not None:
        pairs = ((first(key, value), second(key, value)) for key, value in collection.items())
        return {key: value for key, value in pairs if key is not None}
    return None if collection is None else [first(item) for item in collection]


def _spark_transform(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    if not isinstance(types[0], Map):
        return f"transform({arguments[0]}, {arguments[1]})"
    entries, keys, values = arguments
    both = f"map_keys({entries}), map_values({entries})"
    zipped = f"arrays_zip(zip_with({both}, {keys}), zip_with({both}, {values}))"
    pairs = f"transform({zipped}, `lambda pair` -> struct(`lambda pair`.`0` as key, `lambda pair`.`1` as value))"
    return f"map_from_entries(filter({pairs}, `lambda pair` -> `lambda pair`.key is not null))"


def _filter(collection: Collection, keep: Callable[..., Any]) -> Any:
    if isinstance(collection, dict):
        return {key: value for key, value in collection.items() if keep(key, value) is True}
    return None if collection is None else [item for item in collection if keep(item) is True]


def _spark_filter(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    function = "map_filter" if isinstance(types[0], Map) else "filter"
    return f"{function}({arguments[0]}, {arguments[1]})"


def _reduce(collection: Collection, state: Any, step: Callable[..., Any]) -> Any:
    if state is None or collection is None:
        return state
    if isinstance(collection, dict):
        return reduce(lambda so_far, entry: step(so_far, *entry), collection.items(), state)
    return reduce(step, collection, state)


def _spark_reduce(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    collection, state, step = arguments
    items, function = collection, str(step)
    if isinstance(types[0], Map) and isinstance(step, LambdaText):
        items, function = f"map_entries({collection})", _over_entries(step)
    reduced = f"aggregate({items}, {state}, {function})"
    return f"case when {state} is null or {collection} is null then {state} else {reduced} end"


def _over_entries(step: LambdaText) -> str:
    """(state, key, value) as a lambda of the state and one entry, named after both so that nothing is hidden."""
    state, key, value = step.parameters
    entry = f"`lambda entry {key.strip('`')} {value.strip('`')}`"
    body = step.body.replace(key, f"{entry}.key").replace(value, f"{entry}.value")
    return f"({state}, {entry}) -> {body}"


FUNCTIONS = (
    _lambda(
        "FILTER",
        "The elements of an array, or entries of a map, for which the lambda is true.",
        "array ARRAY<T>, keep LAMBDA<T, BOOLEAN> -> ARRAY<T>",
        "map MAP<K, V>, keep LAMBDA<K, V, BOOLEAN> -> MAP<K, V>",
        python=_filter,
        spark=_spark_filter,
    ),
    _lambda(
        "REDUCE",
        "One value from an array or a map: the lambda takes the value so far, which begins as `state`, and the next "
        "element or entry. A null state gives null.",
        "array ARRAY<T>, state S, step LAMBDA<S, T, S> -> S",
        "map MAP<K, V>, state S, step LAMBDA<S, K, V, S> -> S",
        python=_reduce,
        spark=_spark_reduce,
    ),
    _lambda(
        "TRANSFORM",
        "An array of what the lambda makes of every element; of a map, two lambdas make the new keys and values.",
        "array ARRAY<T>, change LAMBDA<T, U> -> ARRAY<U>",
        "map MAP<K, V>, key LAMBDA<K, V, A>, value LAMBDA<K, V, B> -> MAP<A, B>",
        python=_transform,
        spark=_spark_transform,
    ),
)
