"""Damage to a broker's files between two runs, seen from outside: every acknowledged record is served afterwards.

One broker writes a topic for each kind of damage, ends (cleanly, or by kill -9), its files are damaged, and it starts
again. Then each topic must have all its records, find them by time, take new ones at the right offset, and know its
producers.
"""

from __future__ import annotations

import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.integration.administering import BROKER, TOPIC, add_partitions, alter
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    EARLIEST,
    LATEST,
    batch,
    create_topic,
    delete_topic,
    describe_topics,
    list_offset,
    new_topic,
    now_ms,
    produce,
    read_all,
    read_values,
    send_values,
    topic_id_of,
)
from tests.integration.watching import open_files, process_id
from tests.support.brokers import PenstockBroker
from tests.support.processes import LoggedProcess
from tests.support.raw_client import RawClient

BATCHES = 120
START = now_ms() - 3_600_000
PRODUCER = 424242


def value(number: int) -> bytes:
    return b"%06d" % number * 20


def fill(client: RawClient, topic: str) -> None:
    """Many segments with many index entries, by one idempotent producer."""
    create_topic(client, topic, internal_segment_bytes="8000", index_interval_bytes="400")
    for number in range(BATCHES):
        send_values(
            client,
            topic,
            value(number),
            timestamp=START + number * 1000,
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=number,
        )


def check(client: RawClient, topic: str) -> None:
    """Everything is there and everything works."""
    assert [record.value for record in read_all(client, topic)] == [value(number) for number in range(BATCHES)]
    for number in (0, 1, BATCHES // 2, BATCHES - 1):
        assert list_offset(client, topic, START + number * 1000) == number
        assert list_offset(client, topic, START + number * 1000 - 500) == number
    again = batch(value(BATCHES - 1), producer_id=PRODUCER, producer_epoch=0, base_sequence=BATCHES - 1)
    assert produce(client, topic, again).base_offset == BATCHES - 1, "a duplicate was taken for a new batch"
    gap = batch(b"gap", producer_id=PRODUCER, producer_epoch=0, base_sequence=BATCHES + 5)
    assert produce(client, topic, gap).error_code == 45
    assert send_values(client, topic, b"next") == BATCHES


# -- Damage --------------------------------------------------------------------------------------------------------

Damage = Callable[[Path], None]


def files(directory: Path, suffix: str) -> list[Path]:
    return sorted(directory.glob(f"*{suffix}"))


def removing(suffix: str) -> Damage:
    def damage(directory: Path) -> None:
        for path in files(directory, suffix):
            path.unlink()

    return damage


def overwriting(suffix: str, content: Callable[[bytes], bytes]) -> Damage:
    def damage(directory: Path) -> None:
        for path in files(directory, suffix):
            path.write_bytes(content(path.read_bytes()))

    return damage


def appending(content: Callable[[bytes], bytes]) -> Damage:
    """Behind the end of the last segment."""

    def damage(directory: Path) -> None:
        last = files(directory, ".log")[-1]
        with last.open("ab") as log:
            log.write(content(last.read_bytes()))

    return damage


def leaving_over(*names: str) -> Damage:
    def damage(directory: Path) -> None:
        for name in names:
            (directory / name).write_bytes(b"left over from something that was interrupted")

    return damage


def noise(old: bytes) -> bytes:
    return random.Random(7).randbytes(max(len(old), 50))


EVERY_END: dict[str, Damage] = {
    "nothing": lambda directory: None,
    "no index": removing(".index"),
    "no timeindex": removing(".timeindex"),
    "neither index": removing("index"),
    "empty index": overwriting(".index", lambda old: b""),
    "empty timeindex": overwriting(".timeindex", lambda old: b""),
    "index of odd length": overwriting(".index", lambda old: old + b"abc"),
    "timeindex of odd length": overwriting(".timeindex", lambda old: old + b"abc"),
    "no snapshot": removing(".snapshot"),
    "empty snapshot": overwriting(".snapshot", lambda old: b""),
    "snapshot of noise": overwriting(".snapshot", noise),
    "snapshot cut": overwriting(".snapshot", lambda old: old[:-5]),
    "snapshot with a flipped bit": overwriting(".snapshot", lambda old: old[:-1] + bytes([old[-1] ^ 1])),
    "snapshot of the future": leaving_over("00000000000000999999.snapshot"),
    "no leader epochs": removing("leader-epoch-checkpoint"),
    "empty leader epochs": overwriting("leader-epoch-checkpoint", lambda old: b""),
    "leader epochs of noise": overwriting("leader-epoch-checkpoint", noise),
    "no partition metadata": removing("partition.metadata"),
    "empty partition metadata": overwriting("partition.metadata", lambda old: b""),
    "transaction index of noise": leaving_over("00000000000000000000.txnindex"),
    "left-over files": leaving_over(
        "00000000000000000000.log.cleaned",
        "00000000000000000000.index.cleaned",
        "00000000000000000005.log.deleted",
        "00000000000000000005.index.deleted",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
        "notes.txt",
    ),
}
AFTER_A_CRASH: dict[str, Damage] = {
    "index of noise": overwriting(".index", noise),
    "timeindex of noise": overwriting(".timeindex", noise),
    "index of zeros": overwriting(".index", lambda old: bytes(len(old) // 8 * 8)),
    "index of ones": overwriting(".index", lambda old: b"\xff" * (len(old) // 8 * 8)),
    "torn batch": appending(lambda old: old[: len(old) // 20]),
    "torn header": appending(lambda old: old[:30]),
    "one byte": appending(lambda old: b"\0"),
    "zeros behind the end": appending(lambda old: bytes(10_000)),
    "noise behind the end": appending(noise),
    "a batch with a bad CRC": appending(lambda old: old[:100] + b"!" + old[101:]),
}


def topic_of(name: str) -> str:
    return name.replace(" ", "-")


@pytest.fixture(scope="module", params=["stop", "kill"])
def damaged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, PenstockBroker]]:
    broker = PenstockBroker(tmp_path_factory.mktemp("damaged"), {"node.id": "1"})
    broker.start()
    damages = {**EVERY_END, **AFTER_A_CRASH} if request.param == "kill" else EVERY_END
    with RawClient("127.0.0.1", broker.port) as client:
        for name in damages:
            fill(client, topic_of(name))
    getattr(broker, request.param)()
    for name, damage in damages.items():
        damage(broker.partition_dir(topic_of(name)))
    broker.start()
    yield request.param, broker
    broker.kill()


@pytest.mark.parametrize("name", [*EVERY_END, *AFTER_A_CRASH])
def test_every_record_is_served_after_damage(damaged: tuple[str, PenstockBroker], name: str) -> None:
    how, broker = damaged
    if how == "stop" and name in AFTER_A_CRASH:
        return  # Files of a clean stop are believed, as Kafka believes them: such damage needs a crash.
    with RawClient("127.0.0.1", broker.port) as client:
        check(client, topic_of(name))


def test_damage_makes_no_traceback(damaged: tuple[str, PenstockBroker]) -> None:
    assert "Traceback" not in damaged[1].output()


# -- Files of the whole directory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("damage", ["removed", "empty", "noise"])
def test_damaged_checkpoints(start_broker: StartBroker, connect: Connect, topic: str, how: str, damage: str) -> None:
    broker = start_broker()
    fill(connect(broker.port), topic)
    getattr(broker, how)()
    for path in broker.data_dir.glob("*-offset-checkpoint"):
        if damage == "removed":
            path.unlink()
        else:
            path.write_bytes(b"" if damage == "empty" else noise(b""))
    broker.start()
    check(connect(broker.port), topic)


def test_a_torn_metadata_file_keeps_its_whole_lines(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    fill(client, topic)
    topic_id = topic_id_of(client, topic)
    broker.kill()
    (metadata,) = [path for path in broker.data_dir.iterdir() if path.name.startswith("metadata")]
    with metadata.open("ab") as file:
        file.write(metadata.read_bytes()[-200:-100])
    broker.start()
    client = connect(broker.port)
    assert topic_id_of(client, topic) == topic_id
    check(client, topic)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_without_its_metadata_a_broker_adopts_what_it_finds(
    start_broker: StartBroker, connect: Connect, topic: str, how: str
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    fill(client, topic)
    topic_id = topic_id_of(client, topic)
    getattr(broker, how)()
    for path in broker.data_dir.iterdir():
        if path.name.startswith("metadata"):
            path.unlink()
    broker.start()
    client = connect(broker.port)
    assert topic_id_of(client, topic) == topic_id
    check(client, topic)


def test_a_partition_directory_of_another_cluster_is_adopted(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    first, second = start_broker(), start_broker()
    client = connect(first.port)
    fill(client, topic)
    topic_id = topic_id_of(client, topic)
    first.stop()
    second.stop()
    shutil.copytree(first.partition_dir(topic), second.partition_dir(topic))
    second.start()
    client = connect(second.port)
    assert topic_id_of(client, topic) == topic_id
    check(client, topic)
    second.stop()
    second.start()
    assert topic_id_of(connect(second.port), topic) == topic_id


def test_a_directory_of_a_deleted_topic_does_not_come_back(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    """The files of an older topic with the same name, restored by hand, are put aside and not mixed in."""
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    send_values(client, topic, b"old")
    broker.stop()
    aside = broker.directory / "aside"
    shutil.copytree(broker.partition_dir(topic), aside)
    broker.start()
    client = connect(broker.port)
    delete_topic(client, topic)
    create_topic(client, topic)
    send_values(client, topic, b"new")
    new_id = topic_id_of(client, topic)
    broker.stop()
    shutil.rmtree(broker.partition_dir(topic))
    shutil.copytree(aside, broker.partition_dir(topic))
    broker.start()
    client = connect(broker.port)
    assert topic_id_of(client, topic) == new_id
    assert b"old" not in read_values(client, topic)


def test_killed_again_and_again_while_it_starts(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    for number in range(5):
        fill(client, f"{topic}-{number}")
    assert broker.process is not None
    command = broker.process.command
    broker.kill()
    # From before the first file is opened until the broker is up, which takes about half a second.
    for number in range(10):
        process = LoggedProcess(command, broker.directory / f"start{number}.log")
        time.sleep(0.07 * number)
        process.kill()
    broker.start()
    client = connect(broker.port)
    for number in range(5):
        check(client, f"{topic}-{number}")


def test_offsets_after_a_crash_are_those_before(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    for number in range(3):
        assert send_values(client, topic, b"%d" % number) == number
        broker.kill()
        broker.start()
        client = connect(broker.port)
        assert (list_offset(client, topic, EARLIEST), list_offset(client, topic, LATEST)) == (0, number + 1)


# -- No room left --------------------------------------------------------------------------------------------------


def limit(broker: PenstockBroker, kind: int, value: int) -> None:
    _, highest = resource.prlimit(process_id(broker), kind)
    resource.prlimit(process_id(broker), kind, (highest if value < 0 else value, highest))


@pytest.mark.parametrize("segment_bytes", ["10000", "1000000"], ids=["while rolling", "while appending"])
def test_a_full_disk_refuses_records_and_loses_none(
    start_broker: StartBroker, connect: Connect, topic: str, segment_bytes: str
) -> None:
    """Files may grow to 200 kB only, which an index of a new segment exceeds as well."""
    broker = start_broker()
    client = connect(broker.port)
    other = f"{topic}-other"
    create_topic(client, other)
    create_topic(client, topic, internal_segment_bytes=segment_bytes)
    send_values(client, other, b"before")
    acknowledged = [send_values(client, topic, b"x" * 1000)]
    limit(broker, resource.RLIMIT_FSIZE, 200_000)
    refused = 0
    for _ in range(300):
        result = produce(client, topic, batch(b"x" * 1000))
        if result.error_code == 0:
            acknowledged.append(result.base_offset)
        else:
            assert result.error_code == 56
            refused += 1
    assert refused
    assert any("ERROR" in line and topic in line for line in broker.output().splitlines())
    assert send_values(client, other, b"meanwhile") == 1
    assert len(read_all(client, topic)) == len(acknowledged)
    created = new_topic(f"{topic}-new")
    client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[created], timeout_ms=5000))
    limit(broker, resource.RLIMIT_FSIZE, -1)
    acknowledged.append(send_values(client, topic, b"small"))
    acknowledged.append(send_values(client, topic, b"x" * 1000))
    assert acknowledged == list(range(len(acknowledged)))
    for how in ("stop", "kill"):
        getattr(broker, how)()
        broker.start()
        client = connect(broker.port)
        assert [record.offset for record in read_all(client, topic)] == acknowledged
        acknowledged.append(send_values(client, topic, b"after"))
        assert acknowledged == list(range(len(acknowledged)))
    assert read_values(client, other) == [b"before", b"meanwhile"]
    assert "Traceback" not in broker.output()


def test_without_descriptors_only_new_partitions_are_refused(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    send_values(client, topic, b"before")
    many = f"{topic}-many"
    limit(broker, resource.RLIMIT_NOFILE, open_files(broker) + 40)
    client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[new_topic(many, 200)], timeout_ms=5000))
    codes = {produce(client, many, batch(b"x"), partition=partition).error_code for partition in range(200)}
    assert codes == {0, 56}
    assert send_values(client, topic, b"meanwhile") == 1
    limit(broker, resource.RLIMIT_NOFILE, -1)
    broker.stop()
    broker.start()
    client = connect(broker.port)
    assert read_values(client, topic) == [b"before", b"meanwhile"]
    assert {produce(client, many, batch(b"x"), partition=partition).error_code for partition in range(200)} == {0}


def test_metadata_that_cannot_be_written_is_an_error_of_the_topics(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker()
    client = connect(broker.port)
    create_topic(client, topic)
    metadata = broker.data_dir / "metadata.penstock"
    limit(broker, resource.RLIMIT_FSIZE, metadata.stat().st_size + 10)
    names = [f"{topic}-1", f"{topic}-2"]
    request = CreateTopicsRequest(topics=[new_topic(name) for name in names], timeout_ms=5000)
    for result, name in zip(client.call(ApiKey.CREATE_TOPICS, 7, request).topics, names, strict=True):
        assert (result.name, result.error_code) == (name, 56)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000)
    (deleted,) = client.call(ApiKey.DELETE_TOPICS, 6, deletion).responses
    assert (deleted.name, deleted.error_code) == (topic, 56)
    assert [each.error_code for each in describe_topics(client, topic, names[0], create=True)] == [0, 3]
    assert alter(client, TOPIC, topic, {"retention.ms": "1000000"}) == 56
    assert alter(client, BROKER, "", {"message.max.bytes": "500"}) == 56
    assert add_partitions(client, topic, 2) == 56
    limit(broker, resource.RLIMIT_FSIZE, -1)
    assert produce(client, topic, batch(b"x" * 1000)).error_code == 0, "what was refused has an effect"
    create_topic(client, names[0])
    broker.kill()
    broker.start()
    codes = [each.error_code for each in describe_topics(connect(broker.port), topic, *names)]
    assert codes == [0, 0, 3]
