"""Command-line tools as clients: kcat, and Kafka's console producer and consumer.

They print and parse text, so each says in ``as_written`` and ``as_read`` what gets lost on that way.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Sequence

from tests.compat.clients.base import CALL_TIMEOUT_S, Client, Headers, Record
from tests.support import peers
from tests.support.java import ToolResult, shared_peer

_NULL = "\x01null\x01"


class Kcat(Client):
    """kcat: a key and a value per line; headers are the same for all records of a run."""

    name = "kcat"

    def as_written(self, records: Sequence[Record]) -> list[Record]:
        return [
            one._replace(key=one.key or b"key", headers=tuple(pair for pair in one.headers if pair[1]), timestamp=None)
            for one in records
            if _is_text(one)
        ]

    def as_read(self, record: Record) -> Record:
        printed = ",".join(f"{name}={'NULL' if value is None else value.decode()}" for name, value in record.headers)
        return record._replace(headers=(("", printed.encode()),) if printed else ())

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
        # -Z makes every empty value of a run null, so records with a null value get a run of their own.
        for (headers, null), run in itertools.groupby(records, key=lambda one: (one.headers, one.value is None)):
            command = [
                str(peers.kcat()),
                "-P",
                "-b",
                bootstrap,
                "-t",
                topic,
                "-p",
                str(partition),
                "-z",
                codec,
                "-K",
                "\t",
            ]
            command += ["-X", f"acks={acks}", "-X", f"enable.idempotence={str(idempotent).lower()}"]
            command += ["-X", "message.max.bytes=20000000"]
            for name, value in headers:
                command += ["-H", f"{name}={(value or b'').decode()}"]
            lines = b"".join((one.key or b"") + b"\t" + (one.value or b"") + b"\n" for one in run)
            self._run([*command, "-Z"] if null else command, lines)

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        command = [str(peers.kcat()), "-C", "-q", "-b", bootstrap, "-t", topic, "-p", str(partition), "-o", str(start)]
        output = self._run([*command, "-c", str(count), "-f", "%o %T %K %S %h\\n%k%s\\n"])
        records: list[Record] = []
        position = 0
        while position < len(output):
            line_end = output.index(b"\n", position)
            offset, timestamp, key_size, value_size, printed = output[position:line_end].split(b" ", 4)
            key_end = line_end + 1 + max(int(key_size), 0)
            value_end = key_end + max(int(value_size), 0)
            records.append(
                Record(
                    key=output[line_end + 1 : key_end] if int(key_size) >= 0 else None,
                    value=output[key_end:value_end] if int(value_size) >= 0 else None,
                    headers=(("", printed),) if printed else (),
                    timestamp=int(timestamp),
                    offset=int(offset),
                )
            )
            position = value_end + 1
        return records

    def _run(self, command: Sequence[str], stdin: bytes = b"") -> bytes:
        run = subprocess.run(command, input=stdin, capture_output=True, timeout=CALL_TIMEOUT_S, check=False)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.decode(errors="replace"))
        return run.stdout


class Console(Client):
    """Kafka's console producer, and its console consumer on an assigned partition."""

    name = "console"
    writes_xerial_snappy = True

    def as_written(self, records: Sequence[Record]) -> list[Record]:
        return [one._replace(timestamp=None) for one in records if _is_text(one)]

    def as_read(self, record: Record) -> Record:
        return record._replace(headers=tuple((name, value) for name, value in record.headers))

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
        assert partition == 0, "the console producer takes no partition"
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
        arguments += [
            "--command-property",
            f"acks={acks}",
            "--command-property",
            f"enable.idempotence={str(idempotent).lower()}",
        ]
        for one in (
            "parse.key=true",
            "parse.headers=true",
            f"null.marker={_NULL}",
            "headers.separator=,",
            "headers.key.separator=:",
        ):
            arguments += ["--reader-property", one]
        result = shared_peer().tool(
            "ConsoleProducer", *arguments, stdin=b"".join(_console_line(one) for one in records)
        )
        _check(result)

    def read(self, bootstrap: str, topic: str, *, partition: int = 0, start: int = 0, count: int = 1) -> list[Record]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", str(partition)]
        arguments += ["--offset", str(start), "--max-messages", str(count), "--timeout-ms", "20000"]
        # The tool ends only after its last long poll.
        arguments += ["--command-property", "fetch.max.wait.ms=50"]
        for name in ("timestamp", "offset", "headers", "key"):
            arguments += ["--formatter-property", f"print.{name}=true"]
        for one in ("key.separator=\x02", "line.separator=\x03\x03", "headers.separator=\x04", f"null.literal={_NULL}"):
            arguments += ["--formatter-property", one]
        result = shared_peer().tool("consumer.ConsoleConsumer", *arguments)
        _check(result)
        return [_parse_console(one) for one in result.stdout.split(b"\x03\x03")[:-1]]


def _is_text(record: Record) -> bool:
    """Whether a line of text can carry the key and the value."""
    content = (record.key or b"") + (record.value or b"")
    return content.isascii() and not any(byte < 32 for byte in content)


def _check(result: ToolResult) -> None:
    if result.code != 0 or "ERROR" in result.stderr or "Exception" in result.stderr:
        raise RuntimeError(f"exit code {result.code}\n{result.text[-2000:]}\n{result.stderr[-2000:]}")


def _console_line(record: Record) -> bytes:
    null = _NULL.encode()
    headers = b",".join(name.encode() + b":" + (null if value is None else value) for name, value in record.headers)
    key = null if record.key is None else record.key
    value = null if record.value is None else record.value
    # A marker in place of the headers stands for none; an empty text would be a header without a name.
    return (headers or null) + b"\t" + key + b"\t" + value + b"\n"


def _parse_console(line: bytes) -> Record:
    timestamp, offset, headers, rest = line.split(b"\x02", 3)
    # Binary test values hold every byte once, the separator too, so the key decides where it ends.
    key, value = rest.split(b"\x02", 1) if rest.count(b"\x02") == 1 else _halves(rest)
    null = _NULL.encode()
    return Record(
        key=None if key == null else key,
        value=None if value == null else value,
        headers=_console_headers(headers),
        timestamp=int(timestamp.split(b":")[1]),
        offset=int(offset.split(b":")[1]),
    )


def _halves(rest: bytes) -> tuple[bytes, bytes]:
    middle = len(rest) // 2
    assert rest[middle : middle + 1] == b"\x02", rest
    return rest[:middle], rest[middle + 1 :]


def _console_headers(printed: bytes) -> Headers:
    if printed == b"NO_HEADERS":
        return ()
    pairs = [one.split(b":", 1) for one in printed.split(b"\x04")]
    return tuple((name.decode(), None if value == _NULL.encode() else value) for name, value in pairs)
