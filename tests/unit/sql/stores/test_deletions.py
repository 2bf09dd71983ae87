"""Deletions that delete nothing are not written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sql.plan.nodes import Sink, SourceNode
from penstock.sql.plan.results import source_of
from penstock.sql.schema import ColumnSchema, Format, Schema
from penstock.sql.stores.deletions import without_needless_deletions
from penstock.sql.stores.table_store import Change, TableStore
from penstock.sql.types import BIGINT, STRING, Array, SqlType


def sink(key: SqlType = STRING) -> Sink:
    return Sink(
        name="T",
        kind="TABLE",
        topic="t",
        schema=Schema(key=(ColumnSchema("K", key),), value=(ColumnSchema("V", BIGINT),)),
        key_format=Format("JSON"),
        value_format=Format("JSON"),
    )


def table_with(tmp_path: Any, result: Sink, *keys: Any) -> TableStore:
    source: SourceNode = source_of(result)
    store = TableStore(tmp_path / "t.sqlite", source, "id")
    store.apply([Change((key,), None, (key, 1), 0, 0, 0) for key in keys], {0: 1})
    return store


def rows(key_type: pa.DataType, *changes: tuple[Any, int | None]) -> pa.Table:
    return pa.table(
        {
            "K": pa.array([key for key, _ in changes], key_type),
            "V": pa.array([value for _, value in changes], pa.int64()),
            "__DELETED": [value is None for _, value in changes],
        }
    )


def kept(table: pa.Table) -> list[tuple[Any, int | None]]:
    return list(zip(table["K"].to_pylist(), table["V"].to_pylist(), strict=True))


def test_what_is_neither_in_the_table_nor_in_the_batch_is_not_deleted(tmp_path: Any) -> None:
    table = table_with(tmp_path, sink(), "there")
    changes = [("there", None), ("there", None), ("none", None), ("new", 1), ("new", None), ("new", None), ("x", 2)]
    result = without_needless_deletions(rows(pa.string(), *changes), sink(), table)
    assert kept(result) == [("there", None), ("new", 1), ("new", None), ("x", 2)]


def test_keys_may_be_lists(tmp_path: Any) -> None:
    result = sink(Array(STRING))
    table = table_with(tmp_path, result, ["a"])
    changed = without_needless_deletions(rows(pa.list_(pa.string()), (["a"], None), (["b"], None)), result, table)
    assert kept(changed) == [(["a"], None)]
