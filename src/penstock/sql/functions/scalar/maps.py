"""Maps. Spark takes no null as a key: such entries are left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.functions.signatures import signature
from penstock.sql.types import STRING, Array, Field, Map, SqlType, Struct

_map = partial(scalar, "MAP")


def _as_map(keys: list[str | None], values: list[Any]) -> dict[str, Any]:
    """A key without a value has null, a value without a key is left out."""
    padded = values + [None] * (len(keys) - len(values))
    return {key: value for key, value in zip(keys, padded, strict=False) if key is not None}


_SPARK_AS_MAP = (
    "map_from_entries(filter(transform({0}, (`lambda key`, `lambda index`) ->"
    " struct(`lambda key` as key, get({1}, `lambda index`) as value)),"
    " `lambda entry` -> `lambda entry`.key is not null))"
)


def _entries_type(types: Sequence[SqlType]) -> SqlType:
    value = types[0].value if isinstance(types[0], Map) else STRING
    return Array(Struct((Field("K", STRING), Field("V", value))))


def _entries(entries: dict[str, Any], in_order: bool) -> list[dict[str, Any]]:
    names = sorted(entries) if in_order else list(entries)
    return [{"K": name, "V": entries[name]} for name in names]


_SPARK_PAIRS = (
    "transform(map_entries({0}), `lambda entry` -> named_struct('K', `lambda entry`.key, 'V', `lambda entry`.value))"
)
_BY_KEY = (
    "(`lambda one`, `lambda other`) -> case when `lambda one`.K < `lambda other`.K then -1"
    " when `lambda one`.K > `lambda other`.K then 1 else 0 end"
)
_SPARK_ENTRIES = (
    "case when {1} then array_sort(" + _SPARK_PAIRS + ", " + _BY_KEY + ") when not {1} then " + _SPARK_PAIRS + " end"
)


def _union(one: dict[Any, Any] | None, other: dict[Any, Any] | None) -> dict[Any, Any] | None:
    return None if one is None and other is None else {**(one or {}), **(other or {})}


FUNCTIONS = (
    _map(
        "AS_MAP",
        "A map from an array of keys and an array of values.",
        "keys ARRAY<STRING>, values ARRAY<T> -> MAP<STRING, T>",
        python=_as_map,
        spark="case when {1} is not null then " + _SPARK_AS_MAP + " end",
    ),
    _map(
        "ENTRIES",
        "An array of the entries of the map as structs with the fields K and V, in order of the keys when `sorted` is "
        "true.",
        signature("map MAP<STRING, T>, sorted BOOLEAN", _entries_type),
        python=_entries,
        spark=_SPARK_ENTRIES,
    ),
    _map(
        "MAP_KEYS",
        "An array of the keys.",
        "map MAP<K, V> -> ARRAY<K>",
        python=list,
        spark="map_keys({0})",
    ),
    _map(
        "MAP_UNION",
        "The entries of both maps; for a key that both have, the value of the second. A null map counts as an empty "
        "one, unless both are null.",
        "one MAP<K, V>, other MAP<K, V> -> MAP<K, V>",
        python=_union,
        spark="coalesce(map_concat({0}, {1}), {0}, {1})",
        strict=False,
    ),
    _map(
        "MAP_VALUES",
        "An array of the values.",
        "map MAP<K, V> -> ARRAY<V>",
        python=lambda entries: list(entries.values()),
        spark="map_values({0})",
    ),
)
