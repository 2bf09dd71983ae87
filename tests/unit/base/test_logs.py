from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from penstock.base.logs import configure_logging

log = logging.getLogger("tests.logs")


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_text_lines() -> None:
    out = io.StringIO()
    configure_logging("text", "info", out)
    log.info("topic %s created", "orders", extra={"partitions": 3, "by": "a b", "empty": ""})
    log.debug("not shown")
    line = out.getvalue()
    assert line[23:] == ' INFO tests.logs topic orders created partitions=3 by="a b" empty=""\n'
    assert len(line[:23].split()) == 2


def test_json_lines() -> None:
    out = io.StringIO()
    configure_logging("json", "DEBUG", out)
    log.debug("grüße", extra={"n": 3, "what": {1}, "level": "mine"})
    line = json.loads(out.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "DEBUG",
        "logger": "tests.logs",
        "message": "grüße",
        "n": 3,
        "what": "{1}",
        "field.level": "mine",
    }


def test_tracebacks() -> None:
    text, as_json = io.StringIO(), io.StringIO()
    for form, out in (("text", text), ("json", as_json)):
        configure_logging(form, stream=out)
        try:
            raise ValueError("broken")
        except ValueError:
            log.exception("failed")
    assert "failed\nTraceback" in text.getvalue()
    assert "ValueError: broken" in json.loads(as_json.getvalue())["exception"]


def test_a_client_cannot_forge_a_line() -> None:
    out = io.StringIO()
    configure_logging("text", stream=out)
    log.warning("client %s", "x\n2026-01-01 INFO forged", extra={"id": "a\nb"})
    assert out.getvalue().count("\n") == 1


def test_configuring_again_replaces() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(stream=first)
    configure_logging(stream=second)
    log.info("once")
    assert (first.getvalue(), second.getvalue().count("once")) == ("", 1)
