"""DumpLogSegments, Kafka's own reader of log files, over the files of a stopped broker: it must not complain."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.admin import create_topic
from tests.compat.clients.base import CODECS, Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.samples import sample_records
from tests.support.brokers import Broker, make_target
from tests.support.java import ToolResult, shared_peer

pytestmark = pytest.mark.xdist_group("dump")

TOPIC = "dumped"
PLAIN, COMPRESSED, MIXED = 0, 1, 2


# The tool of 4.3.1 takes -1 for the offset before a file's first record, and so complains of every segment that does
# not begin at 0, Apache Kafka's own too. Only this exact pair is let pass: from -1 to the offset in the file's name.
_FALSE_ALARM = re.compile(r"^Non-consecutive offsets in .*/0*(\d+)\.log\n  -1 is followed by \1\n(?!  )", re.MULTILINE)


def complaints(result: ToolResult) -> list[str]:
    """Everything in the tool's output that says something is wrong. The tool ends with 0 even then."""
    found = [f"exit code {result.code}"] if result.code else []
    found += [line for line in _FALSE_ALARM.sub("", result.stderr).splitlines() if line.strip()]
    wrong = (
        "isvalid: false",
        "invalid bytes at the end",
        "Mismatches",
        "Non-consecutive",
        "out of order",
        "not found in the log",
    )
    return found + [line for line in result.text.splitlines() if any(one in line for one in wrong)]


def dump(files: list[Path], *options: str) -> ToolResult:
    return shared_peer().tool("DumpLogSegments", "--files", ",".join(str(file) for file in files), *options)


def write_everything(bootstrap: str) -> None:
    """Several segments, many index entries, every codec, idempotent and plain producers."""
    create_topic(bootstrap, TOPIC, 3, {"segment.bytes": "1048576", "index.interval.bytes": "4096"})
    bulk = [Record(b"k%d" % (index % 50), (b"%08d" % index) * 60) for index in range(6000)]
    # The Java producer's batches have 16 KB, librdkafka's would fill a segment each and leave the indexes empty.
    CLIENTS["java"].write(bootstrap, TOPIC, bulk, partition=PLAIN, idempotent=True)
    for codec in CODECS:
        CLIENTS["java"].write(bootstrap, TOPIC, bulk[:800], codec=codec, partition=COMPRESSED, idempotent=True)
        for name in ("kafka-python", "franz-go", "sarama"):
            records = CLIENTS[name].as_written(sample_records())
            CLIENTS[name].write(bootstrap, TOPIC, records, codec=codec, partition=MIXED)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Broker:
    broker = make_target(tmp_path_factory.mktemp("dumped"))
    broker.start()
    try:
        write_everything(broker.bootstrap)
    finally:
        broker.stop()
    return broker


def files_of(directory: Path, suffix: str) -> list[Path]:
    found = sorted(directory.glob(f"*{suffix}"))
    assert found, f"no {suffix} file in {sorted(path.name for path in directory.iterdir())}"
    return found


PARTITIONS = pytest.mark.parametrize("partition", [PLAIN, COMPRESSED, MIXED], ids=["plain", "compressed", "mixed"])


@PARTITIONS
def test_records(stopped: Broker, partition: int) -> None:
    result = dump(files_of(stopped.partition_dir(TOPIC, partition), ".log"), "--deep-iteration")
    assert complaints(result) == []
    expected = {PLAIN: 6000, COMPRESSED: 800 * len(CODECS), MIXED: 3 * len(CODECS) * len(sample_records())}
    offsets = [int(line.split()[2]) for line in result.text.splitlines() if line.startswith("| offset: ")]
    assert offsets == list(range(expected[partition]))


@PARTITIONS
def test_indexes(stopped: Broker, partition: int) -> None:
    directory = stopped.partition_dir(TOPIC, partition)
    indexes = files_of(directory, ".index") + files_of(directory, ".timeindex")
    for options in (["--index-sanity-check"], ["--verify-index-only"], []):
        assert complaints(dump(indexes, *options)) == [], options


def test_segments_were_rolled_and_indexed(stopped: Broker) -> None:
    directory = stopped.partition_dir(TOPIC, PLAIN)
    segments = files_of(directory, ".log")
    assert len(segments) >= 3
    # One index entry for about every 4096 bytes, but not more than one per batch.
    for segment in segments[:-1]:
        assert segment.with_suffix(".index").stat().st_size % 8 == 0
        assert segment.with_suffix(".index").stat().st_size >= 8 * 4
        assert segment.with_suffix(".timeindex").stat().st_size % 12 == 0
        assert segment.with_suffix(".timeindex").stat().st_size > 0


@PARTITIONS
def test_producer_snapshots(stopped: Broker, partition: int) -> None:
    result = dump(files_of(stopped.partition_dir(TOPIC, partition), ".snapshot"))
    assert complaints(result) == []
    ids = {line.split()[1] for line in result.text.splitlines() if line.startswith("producerId: ")}
    assert len(ids) == {PLAIN: 1, COMPRESSED: len(CODECS), MIXED: 0}[partition]


def test_partition_metadata_and_checkpoints(stopped: Broker) -> None:
    directory = stopped.partition_dir(TOPIC, PLAIN)
    version, topic_id = (directory / "partition.metadata").read_text().splitlines()
    assert version == "version: 0"
    assert len(topic_id) == len("topic_id: ") + 22
    assert (directory / "leader-epoch-checkpoint").read_text().splitlines() == ["0", "1", "0 0"]
    recovery = (stopped.data_dir / "recovery-point-offset-checkpoint").read_text().splitlines()
    assert f"{TOPIC} {PLAIN} 6000" in recovery
    watermarks = (stopped.data_dir / "replication-offset-checkpoint").read_text().splitlines()
    assert f"{TOPIC} {PLAIN} 6000" in watermarks
    assert (stopped.data_dir / ".kafka_cleanshutdown").exists()


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x41
    path.write_bytes(content)


def drop_second_batch(path: Path) -> None:
    content = path.read_bytes()
    first = 12 + int.from_bytes(content[8:12])
    second = 12 + int.from_bytes(content[first + 8 : first + 12])
    path.write_bytes(content[:first] + content[first + second :])


def shift_first_entry(path: Path) -> None:
    """Moves the offset of an index entry by one."""
    content = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from(">i", content, 8)
    struct.pack_into(">i", content, 8, offset + 1)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("suffix", "damage", "options"),
    [
        (".log", lambda path: flip(path, 200), ["--deep-iteration"]),
        (".log", lambda path: path.write_bytes(path.read_bytes()[:-7]), ["--deep-iteration"]),
        (".log", drop_second_batch, ["--deep-iteration"]),
        (".index", shift_first_entry, ["--verify-index-only"]),
        (".index", lambda path: path.write_bytes(path.read_bytes() + b"\0\0\0"), ["--index-sanity-check"]),
        (".timeindex", lambda path: flip(path, 5), ["--verify-index-only"]),
        (".snapshot", lambda path: flip(path, 12), []),
    ],
    ids=["record", "torn batch", "missing batch", "index entry", "index size", "time index entry", "snapshot"],
)
def test_the_tool_does_complain(
    stopped: Broker, tmp_path: Path, suffix: str, damage: Callable[[Path], None], options: list[str]
) -> None:
    """What the tests above look for is really said of a damaged file."""
    directory = tmp_path / f"{TOPIC}-0"
    shutil.copytree(stopped.partition_dir(TOPIC, PLAIN), directory)
    # Not the first segment: the exception that is made for the others must not hide real damage.
    damaged = files_of(directory, suffix)[1]
    damage(damaged)
    assert complaints(dump([damaged], *options)) != []
