"""Who cannot be answered any more, and who was answered with an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from penstock.sql.spark.running import java_end
from penstock.sql.spark.running.java_end import is_java_gone, quieten_accumulators


@pytest.mark.parametrize(
    ("error", "java_lives", "gone"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), True, True),
        (ConnectionRefusedError(111, "Connection refused"), True, True),
        (Py4JError("An error occurred while calling o12017.isActive"), False, True),
        (Py4JError("An error occurred while calling o12017.isActive"), True, False),
        (ValueError("ours"), False, False),
    ],
)
def test_a_call_that_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, error: Exception, java_lives: bool, gone: bool
) -> None:
    monkeypatch.setattr(java_end, "java_is_alive", lambda: java_lives)
    monkeypatch.setattr(java_end, "_NOTICED_WITHIN_S", 0.01)
    assert is_java_gone(error) is gone


def test_the_server_of_accumulators_says_nothing_when_java_ends(capfd: pytest.CaptureFixture[str]) -> None:
    server = SimpleNamespace(handle_error=lambda request, address: print("Traceback"))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server))
    quieten_accumulators(spark)
    server.handle_error("request", ("127.0.0.1", 1))
    assert capfd.readouterr().out == ""
