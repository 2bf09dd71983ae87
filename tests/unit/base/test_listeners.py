from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ConfigErrors
from penstock.base.config.listeners import ListenerError, parse_listener, parse_protocol_map

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "OUT-SIDE": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "name", "host", "port"),
    [
        ("PLAINTEXT://localhost:9092", "PLAINTEXT", "localhost", 9092),
        ("plaintext://:0", "PLAINTEXT", "", 0),
        (" PLAINTEXT://0.0.0.0:65535 ", "PLAINTEXT", "0.0.0.0", 65535),
        ("PLAINTEXT://[::1]:9092", "PLAINTEXT", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "PLAINTEXT", "fe80::1%eth0", 9092),
        ("Out-Side://my_host-1.example:1", "OUT-SIDE", "my_host-1.example", 1),
    ],
)
def test_parse(text: str, name: str, host: str, port: int) -> None:
    listener = parse_listener(text, PROTOCOLS)
    assert (listener.name, listener.host, listener.port) == (name, host, port)
    assert parse_listener(str(listener), PROTOCOLS) == listener


@pytest.mark.parametrize(
    "text",
    ["", "localhost:9092", "PLAINTEXT://localhost", "PLAINTEXT://localhost:", "PLAINTEXT://::1:9092",
     "PLAINTEXT://[zz]:1", "PLAINTEXT://[1.2.3.4]:1", "PLAINTEXT://a b:1", "PLAINTEXT://h:65536", "PLAINTEXT://h:-1",
     "WHAT://h:1", "://h:1"],
)  # fmt: skip
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ListenerError):
        parse_listener(text, PROTOCOLS)


@given(st.text())
def test_any_text_is_a_listener_or_a_listener_error(text: str) -> None:
    try:
        parse_listener(text, PROTOCOLS)
    except ListenerError:
        pass


def test_protocol_map() -> None:
    assert parse_protocol_map("a:plaintext, B:SSL,") == {"A": "PLAINTEXT", "B": "SSL"}
    for wrong in ("A", "A:TLS", "A:SSL,a:SSL", ":SSL"):
        with pytest.raises(ListenerError):
            parse_protocol_map(wrong)


def config(listeners: str, advertised: str | None = None, **more: str) -> BrokerConfig:
    values = {"listeners": listeners, **{key.replace("_", "."): text for key, text in more.items()}}
    if advertised is not None:
        values["advertised.listeners"] = advertised
    return BrokerConfig.of(values, hostname="machine")


def test_each_listener_has_its_advertised_address() -> None:
    made = config(
        "IN://:9092,OUT://127.0.0.1:9093,PLAINTEXT://[::1]:9094",
        "OUT://example.org:443",
        listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    )
    assert [str(entry) for entry in made.advertised_listeners] == [
        "IN://machine:9092",
        "OUT://example.org:443",
        "PLAINTEXT://[::1]:9094",
    ]


def test_any_free_port_stays_zero_until_it_is_bound() -> None:
    assert config("PLAINTEXT://127.0.0.1:0").advertised_listeners[0].port == 0


def test_ipv4_and_ipv6_may_share_a_port() -> None:
    names = "A:PLAINTEXT,B:PLAINTEXT"
    assert len(config("A://127.0.0.1:1,B://[::1]:1", listener_security_protocol_map=names).listeners) == 2


@pytest.mark.parametrize(
    ("listeners", "advertised", "message"),
    [
        ("PLAINTEXT://:1,PLAINTEXT://:2", None, "the name PLAINTEXT is used twice"),
        ("PLAINTEXT://:1,SSL://:1", None, "port 1 is used by PLAINTEXT and SSL"),
        ("SSL://:1", None, "SSL does not work yet; use a PLAINTEXT listener"),
        ("SASL_PLAINTEXT://:1", None, "SASL_PLAINTEXT does not work yet"),
        ("PLAINTEXT://0.0.0.0:9092", None, "set advertised.listeners to an address that they can reach"),
        ("PLAINTEXT://[::]:9092", None, "set advertised.listeners"),
        ("PLAINTEXT://:1", "PLAINTEXT://0.0.0.0:1", "clients cannot connect to PLAINTEXT://0.0.0.0:1"),
        ("PLAINTEXT://:1", "SSL://h:1", "SSL is not one of the listeners (PLAINTEXT)"),
        ("PLAINTEXT://:1", "PLAINTEXT://a:1,PLAINTEXT://b:1", "the name PLAINTEXT is used twice"),
        ("EXTERNAL://:1", None, "add EXTERNAL:PLAINTEXT there"),
        ("", None, "there is no listener for clients"),
    ],
)
def test_problems(listeners: str, advertised: str | None, message: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        config(listeners, advertised)
    assert message in str(raised.value)


def test_0_0_0_0_with_an_advertised_address_is_fine() -> None:
    made = config("PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://localhost:9092")
    assert (made.listeners[0].host, made.advertised_listeners[0].host) == ("0.0.0.0", "localhost")


def test_only_controller_listeners_are_too_few() -> None:
    with pytest.raises(ConfigErrors, match="no listener for clients"):
        config("CONTROLLER://:9093", controller_listener_names="CONTROLLER")


def test_inter_broker_listener_must_exist() -> None:
    with pytest.raises(ConfigErrors, match="is not one of the listeners"):
        config("PLAINTEXT://:9092", inter_broker_listener_name="OTHER")
    with pytest.raises(ConfigErrors, match="not both"):
        config("PLAINTEXT://:9092", inter_broker_listener_name="PLAINTEXT", security_inter_broker_protocol="PLAINTEXT")
