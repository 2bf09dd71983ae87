"""`EphemeralBroker` without pytest's help: start, stop, restart, log, settings, bad input."""

from __future__ import annotations

import logging
import os
import socket
import threading
import unittest

import pytest

from penstock.testing import EphemeralBroker, EphemeralBrokerError
from tests.integration.driving import create_topic, read_values, send_values
from tests.support.raw_client import connect


def test_a_broker_lives_as_long_as_its_block_and_leaves_nothing() -> None:
    threads = set(threading.enumerate())
    with EphemeralBroker() as kafka:
        assert kafka.bootstrap_servers == f"127.0.0.1:{kafka.port}"
        directory = kafka.data_directory
        assert os.path.isdir(directory)
        with connect("127.0.0.1", kafka.port) as client:
            create_topic(client, "t")
            assert send_values(client, "t", b"x") == 0
        port = kafka.port
    assert not os.path.exists(directory)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert set(threading.enumerate()) <= threads


async def test_an_async_block() -> None:
    async with EphemeralBroker() as kafka:
        with connect("127.0.0.1", kafka.port) as client:
            create_topic(client, "t")


class InUnittest(unittest.TestCase):
    kafka: EphemeralBroker

    @classmethod
    def setUpClass(cls) -> None:
        cls.kafka = cls.enterClassContext(EphemeralBroker())

    def test_it_is_there(self) -> None:
        assert self.kafka.create_topic("t") == "t"


def test_two_brokers_at_once_have_data_and_logs_of_their_own() -> None:
    with EphemeralBroker() as one, EphemeralBroker() as other:
        one.create_topic("only-in-one")
        other.create_topic("only-in-other")
        assert "only-in-one" in one.log_text()
        assert "only-in-one" not in other.log_text()


def test_a_restart_keeps_address_data_and_log() -> None:
    with EphemeralBroker() as kafka:
        kafka.create_topic("t")
        with connect("127.0.0.1", kafka.port) as client:
            send_values(client, "t", b"kept")
        before = kafka.bootstrap_servers
        kafka.restart()
        assert kafka.bootstrap_servers == before
        with connect("127.0.0.1", kafka.port) as client:
            assert read_values(client, "t") == [b"kept"]
        assert "created topic t" in kafka.log_text()


def test_topics_and_settings_under_kafkas_names() -> None:
    with EphemeralBroker({"num.partitions": 3, "auto.create.topics.enable": False}) as kafka:
        kafka.create_topic("t", 2, cleanup_policy="compact", retention_ms=1000)
        assert sorted(name for name in os.listdir(kafka.data_directory) if name.startswith("t-")) == ["t-0", "t-1"]


def test_the_brokers_lines_do_not_reach_the_applications_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with EphemeralBroker() as kafka:
        kafka.create_topic("t")
        logging.getLogger("penstock.network.channel").warning("from the application")
        assert "created topic" in kafka.log_text()
        assert "from the application" not in kafka.log_text()
    assert "from the application" in caplog.text
    assert "created topic" not in caplog.text
    assert not logging.getLogger("penstock.controller.controller").filters


def test_the_environment_of_the_developer_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LISTENERS", "PLAINTEXT://nowhere.invalid:1")
    with EphemeralBroker() as kafka:
        kafka.create_topic("t")


def test_bad_input_gets_one_sentence_with_the_remedy() -> None:
    with pytest.raises(EphemeralBrokerError, match=r"num\.partitions"):
        EphemeralBroker({"num.partitions": "many"}).start()
    with pytest.raises(
        EphemeralBrokerError, match=r"'num\.partitons' is not a setting .* did you mean 'num\.partitions'"
    ):
        EphemeralBroker({"num.partitons": 3}).start()
    for known in ("penstock.io.threads", "zookeeper.connect", "listener.name.plaintext.max.connections"):
        EphemeralBroker({known: "1"})
    with pytest.raises(EphemeralBrokerError, match=r"chooses log\.dirs by itself; leave that out, or run `penstock"):
        EphemeralBroker({"log.dirs": "/tmp/mine"})
    stopped = EphemeralBroker()
    with pytest.raises(EphemeralBrokerError, match="does not run; use it inside `with`, or call start"):
        _ = stopped.bootstrap_servers
    with pytest.raises(EphemeralBrokerError, match="does not run"):
        stopped.faults.fail("Produce", 6)
    stopped.stop()
    with EphemeralBroker() as kafka:
        with pytest.raises(EphemeralBrokerError, match="runs already; call stop"):
            kafka.start()
        with pytest.raises(EphemeralBrokerError, match="'a b' was not made"):
            kafka.create_topic("a b")
        with pytest.raises(EphemeralBrokerError, match="partitions=0 is not possible; give 1 or more"):
            kafka.create_topic("t", 0)
        with pytest.raises(EphemeralBrokerError, match=r"no\.such\.key"):
            kafka.create_topic("t", no_such_key=1)
        with pytest.raises(EphemeralBrokerError, match=f"cannot listen on .*{kafka.port}"):
            EphemeralBroker(port=kafka.port).start()
