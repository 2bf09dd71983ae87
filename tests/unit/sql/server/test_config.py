"""The settings of a SQL server."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.base.config.declaration import ConfigErrors
from penstock.sql.server import config as keys
from penstock.sql.server.config import load_config
from penstock.sql.server.listening import HttpServer, Listener, ListenerError, parse_listeners


def test_the_command_line_wins_over_the_file_and_the_rest_goes_where_it_belongs(tmp_path: Path) -> None:
    file = tmp_path / "ksql-server.properties"
    file.write_text(
        "bootstrap.servers=b:1\nlisteners=http://0.0.0.0:8088\nksql.service.id=mine_\nspark.ui.enabled=true\n"
        "security.protocol=SASL_SSL\nksql.streams.auto.offset.reset=earliest\nksql.max.push.querys=3\n"
        "penstock.rows.per.batch=5000\n"
    )
    config = load_config(file, {"listeners": "http://127.0.0.1:0", "spark.executor.memory": "2g"})
    assert config[keys.BOOTSTRAP_SERVERS] == "b:1"
    assert config[keys.LISTENERS] == "http://127.0.0.1:0"
    assert config[keys.SERVICE_ID] == "mine_"
    assert config[keys.PUSH_QUERIES_MAX] == 100
    assert config.spark == {"spark.ui.enabled": "true", "spark.executor.memory": "2g"}
    assert config.client == {"security.protocol": "SASL_SSL"}
    assert config.query == {"ksql.streams.auto.offset.reset": "earliest", "penstock.rows.per.batch": "5000"}
    assert config.warnings == (
        "ksql.max.push.querys is not a setting of the SQL server and has no effect: "
        "did you mean ksql.max.push.queries?",
    )


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "f.properties"
    file.write_text("penstock.sql.shuffle.partitions=0\npenstock.sql.source=magic\n")
    with pytest.raises(ConfigErrors) as caught:
        load_config(file, {"penstock.log.level": "LOUD", "penstock.rows.per.batch": "many"})
    told = {problem.key: problem for problem in caught.value.problems}
    assert set(told) == {
        "penstock.sql.shuffle.partitions", "penstock.sql.source", "penstock.log.level", "penstock.rows.per.batch",
    }  # fmt: skip
    assert told["penstock.sql.source"].origin == f"{file}:2"


def test_secrets_are_not_shown() -> None:
    config = load_config(None, {"sasl.jaas.config": "password=secret"})
    assert "secret" not in str(config.shown)


def test_checkpoints_lie_below_the_data_folder_unless_told() -> None:
    assert load_config(None, {"penstock.sql.data.dir": "/data"}).checkpoint_uri == "file:///data/checkpoints"
    assert load_config(None, {"penstock.sql.checkpoint.uri": "hdfs://x/y"}).checkpoint_uri == "hdfs://x/y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:8088", (Listener(host="127.0.0.1", port=8088),)),
        ("localhost", (Listener(host="localhost", port=8088),)),
        ("http://[::1]:80/,http://a:1", (Listener(host="::1", port=80), Listener(host="a", port=1))),
    ],
)
def test_listeners(text: str, expected: tuple[Listener, ...]) -> None:
    assert parse_listeners(text) == expected


@pytest.mark.parametrize("text", ["https://a:1", "http://a:x", "http://a:99999", "http://:80", "http://a/path"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ListenerError, match=text.replace("?", r"\?")):
        parse_listeners(text)


def test_a_port_in_use_is_told() -> None:
    first = HttpServer(parse_listeners("http://127.0.0.1:0"))
    with pytest.raises(
        ListenerError, match=r"cannot be listened on: address already in use\. Choose another --listeners"
    ):
        HttpServer(first.listeners)
    first.close()


def test_where_others_reach_the_server() -> None:
    assert load_config(None, {"listeners": "http://10.0.0.1:1,http://b:2"}).advertised_url == "http://10.0.0.1:1"
    assert load_config(None, {"listeners": "http://0.0.0.0:1"}).advertised_url == f"http://{socket.gethostname()}:1"
    assert load_config(None, {"ksql.advertised.listener": "http://sql:8088/"}).advertised_url == "http://sql:8088"
