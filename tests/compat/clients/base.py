"""One face for every foreign client: write records with a codec, read records without a group.

``Client.as_written`` says what a client makes of the wanted records (a tool that cannot set time stamps leaves them
open), ``Client.as_read`` what it can show of a record (one that prints headers as text cannot tell null from a word).
So the tests compare exactly what a client is able to say, and nothing less.
"""

from __future__ import annotations

import base64
import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CALL_TIMEOUT_S = 40.0

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record as a test wants it written, or as a client read it.

    ``timestamp`` None: the client chooses; ``offset`` -1: not written yet.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    offset: int = -1


class Client(ABC):
    """A foreign client or tool."""

    name: str
    # Raw snappy and the xerial framing are both on the wire; some clients can open only the first.
    writes_xerial_snappy = False
    reads_xerial_snappy = True
    reads = True

    def write_codecs(self) -> Sequence[str]:
        return CODECS

    def read_codecs(self) -> Sequence[str]:
        return CODECS

    def as_written(self, records: Sequence[Record]) -> list[Record]:
        """The records as this client can write them."""
        return list(records)

    def as_read(self, record: Record) -> Record:
        """A record as this client can show it."""
        return record

    @abstractmethod
    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        partition: int = 0,
        acks: int = -1,
        idempotent: bool = False,
    ) -> None:
        """Writes and waits for every acknowledgement; a refusal raises."""

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        """At least ``count`` records from an offset on."""
        raise AssertionError(f"{self.name} does not read without a group")

    def read_all(self, bootstrap: str, counts: Mapping[str, int]) -> dict[str, list[Record]]:
        """So many records of partition 0 of each of several topics, from offset 0 on."""
        return {topic: self.read(bootstrap, topic, count=count) for topic, count in counts.items()}


def without_null_headers(records: Sequence[Record]) -> list[Record]:
    """For clients that refuse a header without a value."""
    return [one._replace(headers=tuple((name, value or b"") for name, value in one.headers)) for one in records]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def to_json(record: Record) -> dict[str, Any]:
    return {
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "timestamp": record.timestamp,
    }


def from_json(record: dict[str, Any]) -> Record:
    return Record(
        key=_bytes(record["key"]),
        value=_bytes(record["value"]),
        headers=tuple((name, _bytes(value)) for name, value in record["headers"] or ()),
        timestamp=record["timestamp"],
        offset=record["offset"],
    )


class JsonClient(Client):
    """A client in another language: a request as JSON, an answer as JSON."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def call(self, **request: Any) -> Any:
        """The answer's result; its error raises ``RuntimeError``."""

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str = "none",
        partition: int = 0,
        acks: int = -1,
        idempotent: bool = False,
    ) -> None:
        batch = {"topic": topic, "partition": partition, "codec": codec, "records": [to_json(one) for one in records]}
        self.call(op="write", bootstrap=bootstrap, acks=acks, idempotent=idempotent, batches=[batch])

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        wanted = {"topic": topic, "partition": partition, "start": start, "count": count}
        return [from_json(one) for one in self.call(op="read", bootstrap=bootstrap, reads=[wanted])[0]]

    def read_all(self, bootstrap: str, counts: Mapping[str, int]) -> dict[str, list[Record]]:
        wanted = [{"topic": topic, "partition": 0, "start": 0, "count": count} for topic, count in counts.items()]
        results = self.call(op="read", bootstrap=bootstrap, reads=wanted)
        return {topic: [from_json(one) for one in records] for topic, records in zip(counts, results, strict=True)}


class ProgramClient(JsonClient):
    """A program started for every call, with the request on its standard input."""

    def __init__(self, name: str, command: Callable[[], list[str | Path]]) -> None:
        super().__init__(name)
        self._command = command

    def call(self, **request: Any) -> Any:
        run = subprocess.run(
            [str(part) for part in self._command()],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
        if run.returncode != 0 or not run.stdout:
            raise RuntimeError(f"{self.name} ended with {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        answer = json.loads(run.stdout)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]
