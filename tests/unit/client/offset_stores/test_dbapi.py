"""Offsets in SQLite, in the store's own transactions and in the user's."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.offset_stores import DbApiOffsetStore, OffsetStore, copy_offsets, offsets_after
from penstock.client.consumer.offset_stores.dbapi import paramstyle_of
from penstock.client.core.types import OffsetAndMetadata
from penstock.records.record import ConsumerRecord

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


def test_offsets_come_back(path: str) -> None:
    store = DbApiOffsetStore(lambda: sqlite3.connect(path))
    assert isinstance(store, OffsetStore)
    assert store.load("g", [P0, P1]) == {}
    store.save("g", {P0: OffsetAndMetadata(5, "note", 3)})
    store.save("g", {P0: OffsetAndMetadata(6), P1: OffsetAndMetadata(2**40)})
    again = DbApiOffsetStore(lambda: sqlite3.connect(path))
    assert again.load("g", [P0, P1]) == {P0: OffsetAndMetadata(6), P1: OffsetAndMetadata(2**40)}
    assert again.load("other", [P0]) == {}


def test_offsets_are_part_of_the_users_transaction(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE results (value TEXT)")
    store = DbApiOffsetStore(lambda: sqlite3.connect(path), table="my_offsets")
    store.create_table()
    connection.execute("INSERT INTO results VALUES ('a')")
    store.save("g", {P0: OffsetAndMetadata(1)}, connection=connection)
    connection.rollback()
    assert store.load("g", [P0]) == {}
    connection.execute("INSERT INTO results VALUES ('a')")
    store.save("g", {P0: OffsetAndMetadata(1)}, connection=connection)
    assert store.load("g", [P0]) == {}, "not before the user commits"
    assert store.load("g", [P0], connection=connection) == {P0: OffsetAndMetadata(1)}
    connection.commit()
    assert store.load("g", [P0]) == {P0: OffsetAndMetadata(1)}
    assert connection.execute("SELECT count(*) FROM results").fetchone() == (1,)
    connection.close()


def test_table_is_made_in_the_users_transaction_if_need_be(path: str) -> None:
    connection = sqlite3.connect(path)
    store = DbApiOffsetStore(lambda: sqlite3.connect(path))
    connection.execute("CREATE TABLE results (value TEXT)")
    connection.execute("INSERT INTO results VALUES ('a')")
    store.save("g", {P0: OffsetAndMetadata(1)}, connection=connection)
    connection.rollback()
    store.save("g", {P0: OffsetAndMetadata(2)}, connection=connection)
    connection.commit()
    assert store.load("g", [P0]) == {P0: OffsetAndMetadata(2)}
    connection.close()


def test_failed_save_leaves_nothing(path: str) -> None:
    connection = sqlite3.connect(path)
    store = DbApiOffsetStore(connection)
    store.save("g", {P0: OffsetAndMetadata(1)})
    with pytest.raises(sqlite3.Error):
        store.save("g", {P0: OffsetAndMetadata(2), P1: OffsetAndMetadata(3, object())})  # type: ignore[arg-type]
    assert store.load("g", [P0, P1]) == {P0: OffsetAndMetadata(1)}
    connection.close()


@pytest.mark.parametrize("style", ["qmark", "named", "numeric"])
def test_marks_for_parameters(path: str, style: str) -> None:
    store = DbApiOffsetStore(lambda: sqlite3.connect(path), paramstyle=style)
    store.save("g", {P0: OffsetAndMetadata(7)})
    assert store.load("g", [P0]) == {P0: OffsetAndMetadata(7)}


class Recorder:
    """A driver that notes what it is asked."""

    rowcount = 0

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def cursor(self) -> Recorder:
        return self

    def execute(self, text: str, values: Any = ()) -> None:
        self.asked.append((text, values))

    def close(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


@pytest.mark.parametrize(
    ("style", "mark", "values"),
    [("format", "%s", (5, -1, "", "g", "orders", 0)), ("pyformat", "%(p1)s", {"p1": 5, "p4": "g"})],
)
def test_marks_of_other_drivers(style: str, mark: str, values: Any) -> None:
    driver = Recorder()
    DbApiOffsetStore(driver, paramstyle=style, create=False).save("g", {P0: OffsetAndMetadata(5)})
    update, insert = driver.asked
    assert update[0].startswith(f"UPDATE penstock_offsets SET next_offset = {mark}")
    assert insert[0].startswith("INSERT")
    assert update[1] == values or values.items() <= update[1].items()


def test_bad_names_are_refused() -> None:
    with pytest.raises(ValueError, match="plain name"):
        DbApiOffsetStore(None, table="x; DROP TABLE y")
    with pytest.raises(ValueError, match="paramstyle"):
        DbApiOffsetStore(None, paramstyle="odd")


def test_style_is_the_drivers_own() -> None:
    connection = sqlite3.connect(":memory:")
    assert paramstyle_of(connection) == "qmark"
    assert paramstyle_of(object()) == "qmark"
    connection.close()


def test_copy_and_offsets_after() -> None:
    records = [ConsumerRecord("orders", 0, offset, 0, 0, None, b"", (), 4) for offset in (3, 4)]
    assert offsets_after(records) == {P0: OffsetAndMetadata(5, leader_epoch=4)}
    first, second = (DbApiOffsetStore(sqlite3.connect(":memory:")) for _ in range(2))
    first.save("g", {P0: OffsetAndMetadata(5)})
    assert copy_offsets(first, second, "g", [P0, P1]) == {P0: OffsetAndMetadata(5)}
    assert second.load("g", [P0, P1]) == {P0: OffsetAndMetadata(5)}
    for store in (first, second):
        store._connect.close()
