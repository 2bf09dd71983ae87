"""Clients in Java, Go and JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.compat.clients.base import JsonClient, ProgramClient, Record, without_null_headers
from tests.support import peers
from tests.support.java import shared_peer


class Java(JsonClient):
    """Kafka's own Java producer and consumer, in the JVM of this test worker."""

    writes_xerial_snappy = True

    def __init__(self) -> None:
        super().__init__("java")

    def call(self, **request: Any) -> Any:
        if request["op"] == "write":
            request["config"] = {"acks": request.pop("acks"), "enable.idempotence": request.pop("idempotent")}
        elif request["op"] == "read":
            request["config"] = {"fetch.max.wait.ms": 50}
        return shared_peer().call(**request)


class Franz(ProgramClient):
    """franz-go."""

    def __init__(self) -> None:
        super().__init__("franz-go", lambda: [peers.go_programs() / "franz"])


class Sarama(ProgramClient):
    """sarama."""

    writes_xerial_snappy = True

    def __init__(self) -> None:
        super().__init__("sarama", lambda: [peers.go_programs() / "sarama"])


def _node(program: str) -> list[str | Path]:
    return [peers.node(), "--no-warnings", peers.node_programs() / program]


class KafkaJs(ProgramClient):
    """kafkajs, whose consumer works only in a group."""

    reads = False

    def __init__(self) -> None:
        super().__init__("kafkajs", lambda: _node("kafkajs.mjs"))

    def as_written(self, records: Sequence[Record]) -> list[Record]:
        return without_null_headers(records)


class Platformatic(ProgramClient):
    """@platformatic/kafka. Its zstd is Node's own, there from Node 22.15 on, and it opens no xerial snappy."""

    reads_xerial_snappy = False

    def __init__(self) -> None:
        super().__init__("platformatic", lambda: _node("platformatic.mjs"))
        self._codecs: list[str] = []

    def write_codecs(self) -> Sequence[str]:
        if not self._codecs:
            self._codecs = self.call(op="codecs")
        return self._codecs

    def read_codecs(self) -> Sequence[str]:
        return self.write_codecs()
