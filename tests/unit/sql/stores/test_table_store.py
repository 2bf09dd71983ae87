"""A table store: changes in, rows out, position and rows together."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ColumnSchema, Format, Schema, WindowedKey
from penstock.sql.stores.table_store import Bounds, Change, Selection, TableStore, read_rows
from penstock.sql.types import BIGINT, BYTES, DATE, DOUBLE, STRING, TIME, TIMESTAMP, Array, Decimal, Field, Map, Struct

_EVERY_TYPE = (
    BIGINT,
    DOUBLE,
    BYTES,
    DATE,
    TIME,
    TIMESTAMP,
    Decimal(5, 2),
    Array(STRING),
    Map(STRING, BIGINT),
    Struct((Field("A", Decimal(3, 1)), Field("B", Array(DATE)))),
)


def source(*, key: object = STRING, windowed: bool = False, values: tuple[object, ...] = (BIGINT,)) -> SourceNode:
    columns = tuple(ColumnSchema(f"V{index}", each) for index, each in enumerate(values))  # type: ignore[arg-type]
    return SourceNode(
        name="T",
        kind="TABLE",
        topic="t",
        schema=Schema(key=(ColumnSchema("K", key),), value=columns),  # type: ignore[arg-type]
        key_format=Format("KAFKA"),
        value_format=Format("JSON"),
        windowed=WindowedKey("TUMBLING", 10) if windowed else None,
    )


def change(key: object, *values: object, offset: int = 0, window: tuple[int, int] | None = None) -> Change:
    row = (key, *values) if values else None
    return Change((key,), window, row, rowtime=offset * 10, partition=0, offset=offset)


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path / "t.sqlite", source(), "id-1")


def everything(store: TableStore) -> dict[object, object]:
    return {row["K"]: row["V0"] for row in store.reader.rows(Selection())}


def test_a_row_carries_its_columns_and_where_it_came_from(store: TableStore) -> None:
    store.apply([change("a", 1, offset=7)], {0: 8})
    assert list(store.reader.rows(Selection())) == [
        {"K": "a", "V0": 1, "ROWTIME": 70, "ROWPARTITION": 0, "ROWOFFSET": 7}
    ]


@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 9))), max_size=6), max_size=6
    )
)
@settings(max_examples=40, deadline=None)
def test_a_store_holds_the_last_value_of_every_key(
    batches: list[list[tuple[str, int | None]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = TableStore(tmp_path_factory.mktemp("s") / "t.sqlite", source(), "id-1")
    model: dict[str, int] = {}
    for number, batch in enumerate(batches):
        store.apply([change(key) if value is None else change(key, value) for key, value in batch], {0: number + 1})
        for key, value in batch:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
    assert everything(store) == model
    store.close()


def test_a_store_is_there_again_with_its_position(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(), "id-1")
    store.apply([change("a", 1)], {0: 5, 1: 2})
    store.close()
    again = TableStore(tmp_path / "t.sqlite", source(), "id-1")
    assert dict(again.position) == {0: 5, 1: 2}
    assert everything(again) == {"a": 1}


@pytest.mark.parametrize(
    ("other", "topic_id"), [(source(), "id-2"), (source(values=(BIGINT, STRING)), "id-1")], ids=["topic", "schema"]
)
def test_a_store_built_from_something_else_is_built_again(tmp_path: Path, other: SourceNode, topic_id: str) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(), "id-1")
    store.apply([change("a", 1)], {0: 5})
    store.close()
    again = TableStore(tmp_path / "t.sqlite", other, topic_id)
    assert dict(again.position) == {}
    assert list(again.reader.rows(Selection())) == []


def test_a_file_that_is_no_database_is_built_again(tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").write_bytes(b"no database at all" * 100)
    store = TableStore(tmp_path / "t.sqlite", source(), "id-1")
    store.apply([change("a", 1)], {0: 1})
    assert everything(store) == {"a": 1}


def test_every_type_comes_back_as_it_went_in(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(values=_EVERY_TYPE), "id-1")
    row = (
        1 << 62,
        0.5,
        b"\x00\xff",
        datetime.date(2020, 2, 29),
        datetime.time(23, 59, 59, 999_000),
        datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC),
        decimal.Decimal("-12.50"),
        ["x", None],
        {"a": 1, "b": None},
        {"A": decimal.Decimal("1.5"), "B": [datetime.date(1970, 1, 1)]},
    )
    store.apply([change("a", *row)], {0: 1})
    store.apply([change("b", *[None] * len(row))], {0: 2})
    full, empty = store.reader.rows(Selection())
    assert tuple(full[f"V{index}"] for index in range(len(row))) == row
    assert str(full["V6"]) == "-12.50"
    assert [empty[f"V{index}"] for index in range(len(row))] == [None] * len(row)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (BIGINT, [-5, 0, 3, 1 << 40]),
        (DOUBLE, [-1.5, 0.0, 2.25]),
        (STRING, ["", "A", "a", "ä"]),
        (DATE, [datetime.date(1960, 1, 1), datetime.date(2020, 1, 1)]),
        (TIME, [datetime.time(1), datetime.time(1, 0, 0, 1_000)]),
        (TIMESTAMP, [datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1969, 2020)]),
    ],
)
def test_keys_compare_as_their_values_do(tmp_path: Path, key: object, values: list[object]) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(key=key), "id-1")
    store.apply([change(value, index) for index, value in enumerate(values)], {0: 1})
    assert [row["K"] for row in store.reader.rows(Selection())] == values
    some = store.reader.rows(Selection(key_bounds=Bounds(values[1], None)))
    assert [row["K"] for row in some] == values[1:]
    some = store.reader.rows(Selection(keys=((values[1],), (values[0],))))
    assert {row["V0"] for row in some} == {0, 1}


def test_windows_are_told_apart_and_selected(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(windowed=True), "id-1")
    store.apply([change("a", start, window=(start, start + 10)) for start in (0, 10, 20)], {0: 1})
    store.apply([change("a", window=(10, 20))], {0: 2})
    assert [(row["WINDOWSTART"], row["WINDOWEND"]) for row in store.reader.rows(Selection())] == [(0, 10), (20, 30)]
    late = store.reader.rows(Selection(keys=(("a",),), window_start=Bounds(1, None)))
    assert [row["V0"] for row in late] == [20]
    assert store.contains([(("a",), (0, 10)), (("a",), (10, 20)), (("b",), (0, 10))]) == [True, False, False]


def test_windows_older_than_their_retention_go(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(windowed=True), "id-1", retention_ms=100)
    store.apply([change("a", 1, window=(0, 10))], {0: 1})
    store.apply([change("a", 1, offset=20, window=(200, 210))], {0: 2})
    assert [row["WINDOWSTART"] for row in store.reader.rows(Selection())] == [200]


def test_another_process_finds_rows_by_key(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "t.sqlite", source(), "id-1")
    store.apply([change(f"k{number}", number) for number in range(1_200)], {0: 1})
    keys = [("k7",), ("none",), (None,), *[(f"k{number}",) for number in range(1_000)], ("k7",)]
    rows = read_rows(str(store.path), keys)
    assert [None if row is None else row["V0"] for row in rows] == [7, None, None, *range(1_000), 7]
    store.apply([change("k7", 70)], {0: 2})
    (row,) = read_rows(str(store.path), [("k7",)])
    assert row is not None
    assert row["V0"] == 70


def test_who_waits_is_told_when_the_follower_stopped(store: TableStore) -> None:
    assert not store.wait_for({0: 1}, 0.01)
    store.apply([], {0: 1})
    assert store.wait_for({0: 1}, 0.01)
    store.fail(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        store.wait_for({0: 2}, 5)
