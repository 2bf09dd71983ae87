"""The command topic on a real broker: one writer at a time, and every server comes to the same catalog."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock import Admin, Producer
from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.commands.command import COMMAND_VERSION, Command, encode
from penstock.sql.commands.replay import topic_name
from penstock.sql.commands.topic import CommandTopic
from penstock.sql.errors import EngineError, SemanticError
from penstock.sql.kafka import KafkaAccess
from penstock.sql.schema import Format, Schema
from penstock.testing import EphemeralBroker

WAIT_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker() as running:
        yield running


@contextmanager
def server(broker: EphemeralBroker, service_id: str) -> Iterator[CommandTopic]:
    access = KafkaAccess(bootstrap_servers=broker.bootstrap_servers, service_id=service_id)
    topic = CommandTopic(access, Catalog(), lambda before, after: None)
    topic.start()
    try:
        assert topic.replay.wait_ready(WAIT_S)
        yield topic
    finally:
        topic.close()


def source(name: str) -> Source:
    return Source(
        name=name,
        kind="STREAM",
        topic=name.lower(),
        schema=Schema(),
        key_format=Format("NONE"),
        value_format=Format("JSON"),
    )


def create(name: str, mark: str) -> Command:
    return Command(unique=mark, name=f"stream/{name}/create", statement="", message="", sources=(source(name),))


def creating(name: str, mark: str):  # type: ignore[no-untyped-def]
    """Decides as the engine does: a name that is taken is refused."""

    def decide(catalog: Catalog, offset: int) -> Command:
        if name in catalog.sources:
            raise SemanticError(f"{name} exists")
        return create(name, mark)

    return decide


def test_a_command_is_applied_when_append_returns(broker: EphemeralBroker) -> None:
    with server(broker, "one") as topic:
        first = topic.append(creating("A", "1"))
        second = topic.append(creating("B", "2"))
        assert first.applied
        assert second.applied
        assert set(topic.catalog.sources) == {"A", "B"}
        assert first.offset is not None
        assert second.offset is not None
        assert first.offset < second.offset
        assert topic.replay.applied["stream/A/create"].unique == "1"


def test_a_server_that_starts_later_has_the_same_catalog(broker: EphemeralBroker) -> None:
    with server(broker, "later") as first:
        for name in "ABC":
            first.append(creating(name, name))
        with server(broker, "later") as second:
            assert second.catalog == first.catalog


def test_nothing_is_appended_when_the_decision_is_none(broker: EphemeralBroker) -> None:
    with server(broker, "none") as topic:
        appended = topic.append(lambda catalog, offset: None)
        assert appended.offset is None
        assert topic.replay.position == 0


def test_a_refused_decision_leaves_the_topic_usable(broker: EphemeralBroker) -> None:
    with server(broker, "refused") as topic:
        topic.append(creating("A", "1"))
        with pytest.raises(SemanticError, match="A exists"):
            topic.append(creating("A", "2"))
        assert topic.append(creating("B", "3")).applied


def test_two_servers_with_conflicting_statements_accept_exactly_one(broker: EphemeralBroker) -> None:
    with server(broker, "pair") as one, server(broker, "pair") as other:
        for number in range(5):
            outcomes = _both(one, other, f"S{number}")
            assert sorted(outcomes) == ["accepted", "refused"]
        _same_end(one, other)
        assert set(one.catalog.sources) == {f"S{number}" for number in range(5)}


def test_two_servers_with_different_statements_accept_both(broker: EphemeralBroker) -> None:
    with server(broker, "both") as one, server(broker, "both") as other:
        threads = [
            threading.Thread(
                target=lambda topic=topic, k=k: [topic.append(creating(f"{k}{n}", f"{k}{n}")) for n in range(4)]
            )
            for topic, k in ((one, "A"), (other, "B"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S * 2)
        _same_end(one, other)
        assert len(one.catalog.sources) == 8


def test_a_fenced_writer_decides_again_on_the_newer_catalog(broker: EphemeralBroker) -> None:
    """While one server decides, another becomes the writer and appends: the first must see that before it writes."""
    with server(broker, "fence") as one, server(broker, "fence") as other:
        seen: list[set[str]] = []

        def slowly(catalog: Catalog, offset: int) -> Command:
            seen.append(set(catalog.sources))
            if len(seen) == 1:
                other.append(creating("FIRST", "other"))
            return create("SECOND", "one")

        assert one.append(slowly).applied
        assert seen == [set(), {"FIRST"}]
        assert set(one.catalog.sources) == {"FIRST", "SECOND"}


def test_a_command_of_a_newer_version_stops_the_replay_and_says_so(broker: EphemeralBroker) -> None:
    with server(broker, "newer") as topic:
        newer = encode(create("A", "1")).replace(b'"unique"', b'"version":%d,"unique"' % (COMMAND_VERSION + 1), 1)
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            sent = producer.send(topic_name("newer"), newer, partition=0).result(timeout=WAIT_S)
        assert not topic.replay.wait_applied(sent.offset, WAIT_S)
        with pytest.raises(EngineError, match="incompatible command topic version"):
            topic.append(creating("B", "2"))


def test_a_record_that_is_no_command_stops_the_replay_and_says_so(broker: EphemeralBroker) -> None:
    with server(broker, "garbage") as topic:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            sent = producer.send(topic_name("garbage"), b"hello", partition=0).result(timeout=WAIT_S)
        assert not topic.replay.wait_applied(sent.offset, WAIT_S)
        with pytest.raises(EngineError, match="is no command"):
            topic.append(creating("B", "2"))


def test_the_topic_keeps_its_records_for_ever(broker: EphemeralBroker) -> None:
    with server(broker, "kept"), Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        from penstock import ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType.TOPIC, topic_name("kept"))
        configs = admin.describe_configs([resource])[resource]
        assert configs["retention.ms"].value == "-1"
        assert configs["cleanup.policy"].value == "delete"


def test_a_restart_of_the_broker_is_survived() -> None:
    with EphemeralBroker() as broker, server(broker, "restart") as topic:
        topic.append(creating("A", "1"))
        broker.restart()
        assert topic.append(creating("B", "2")).applied
        assert set(topic.catalog.sources) == {"A", "B"}


def _both(one: CommandTopic, other: CommandTopic, name: str) -> list[str]:
    outcomes: list[str] = []
    ready = threading.Barrier(2)

    def attempt(topic: CommandTopic, mark: str) -> None:
        ready.wait(WAIT_S)
        try:
            topic.append(creating(name, mark))
            outcomes.append("accepted")
        except SemanticError:
            outcomes.append("refused")

    threads = [threading.Thread(target=attempt, args=(topic, f"{name}{k}")) for k, topic in enumerate((one, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S * 2)
    return outcomes


def _same_end(one: CommandTopic, other: CommandTopic) -> None:
    end = max(one.replay.position, other.replay.position)
    assert one.replay.wait_applied(end - 1, WAIT_S)
    assert other.replay.wait_applied(end - 1, WAIT_S)
    assert one.catalog == other.catalog
