"""A store follows its topic: a real broker, transactions, tombstones, bad records, restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.sql.formats.decoding import BadRecord
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ColumnSchema, Format, Schema
from penstock.sql.stores.stores import OpenTable, Stores
from penstock.sql.stores.table_store import Selection
from penstock.sql.types import BIGINT, STRING
from penstock.testing import EphemeralBroker

USERS = SourceNode(
    name="USERS",
    kind="TABLE",
    topic="users",
    schema=Schema(key=(ColumnSchema("ID", STRING),), value=(ColumnSchema("LEVEL", STRING), ColumnSchema("N", BIGINT))),
    key_format=Format("KAFKA"),
    value_format=Format("JSON"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker() as broker:
        yield broker


class Reports:
    def __init__(self) -> None:
        self.bad: list[BadRecord] = []
        self.came = threading.Event()

    def __call__(self, records: list[BadRecord]) -> None:
        self.bad += records
        self.came.set()


@pytest.fixture
def kafka(broker: EphemeralBroker, request: pytest.FixtureRequest) -> KafkaAccess:
    return KafkaAccess(bootstrap_servers=broker.bootstrap_servers, service_id="test_")


@pytest.fixture
def users(kafka: KafkaAccess) -> Iterator[SourceNode]:
    with penstock.Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.create_topics([penstock.NewTopic(name="users", num_partitions=3)])
        yield USERS
        admin.delete_topics(["users"])


def rows(table: OpenTable) -> dict[str, tuple[str | None, int | None]]:
    return {row["ID"]: (row["LEVEL"], row["N"]) for row in table.reader.rows(Selection())}


def send(kafka: KafkaAccess, *records: tuple[bytes | None, bytes | None]) -> None:
    with penstock.Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for key, value in records:
            producer.send("users", value, key)


def test_the_last_value_of_every_key_is_there_and_a_tombstone_deletes(
    kafka: KafkaAccess, users: SourceNode, tmp_path: Path
) -> None:
    stores = Stores(tmp_path, kafka, Reports())
    send(kafka, (b"a", b'{"level":"Gold","n":1}'), (b"b", b'{"level":"Silver"}'), (b"a", b'{"level":"Platinum","n":2}'))
    table = stores.open(users)
    table.wait_until_filled(30)
    assert rows(table) == {"a": ("Platinum", 2), "b": ("Silver", None)}
    send(kafka, (b"a", None), (b"c", b'{"LEVEL":"Gold","N":"7"}'))
    table.wait_until_current(30)
    assert rows(table) == {"b": ("Silver", None), "c": ("Gold", 7)}
    stores.close()


def test_what_is_not_committed_is_not_served(kafka: KafkaAccess, users: SourceNode, tmp_path: Path) -> None:
    stores = Stores(tmp_path, kafka, Reports())
    table = stores.open(users)
    with penstock.Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("users", b'{"level":"no"}', b"a").result(10)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("users", b'{"level":"yes"}', b"b").result(10)
        producer.commit_transaction()
    table.wait_until_current(30)
    assert rows(table) == {"b": ("yes", None)}
    stores.close()


def test_a_store_goes_on_where_it_was(kafka: KafkaAccess, users: SourceNode, tmp_path: Path) -> None:
    stores = Stores(tmp_path, kafka, Reports())
    send(kafka, (b"a", b'{"n":1}'))
    stores.open(users).wait_until_current(30)
    stores.close()
    send(kafka, (b"b", b'{"n":2}'))
    stores = Stores(tmp_path, kafka, Reports())
    table = stores.open(users)
    assert table.store.position
    table.wait_until_current(30)
    assert rows(table) == {"a": (None, 1), "b": (None, 2)}
    stores.close_table("USERS")
    assert list(tmp_path.iterdir()) == []
    stores.close()


def test_a_record_that_cannot_be_read_is_told_and_left_out(
    kafka: KafkaAccess, users: SourceNode, tmp_path: Path
) -> None:
    reports = Reports()
    stores = Stores(tmp_path, kafka, reports)
    send(kafka, (b"a", b"{broken"), (b"b", b'{"n":2}'))
    table = stores.open(users)
    table.wait_until_current(30)
    assert rows(table) == {"b": (None, 2)}
    assert reports.came.wait(10)
    assert [bad.topic for bad in reports.bad] == ["users"]
    stores.close()
