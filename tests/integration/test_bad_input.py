"""Bytes that no client should send: an exact error code or a clean close, one line in the log, nobody else unharmed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.protocol.requests import encode_request
from penstock.records.batch import compute_crc
from penstock.records.builder import Record, build_batch
from penstock.records.compression import Codec
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    LATEST,
    batch,
    create_topic,
    describe_topics,
    list_offset,
    new_topic,
    now_ms,
    produce,
    produce_request,
    read_values,
    send_values,
)
from tests.integration.sample_requests import VERSION_NAMES, VERSIONS, Sample, sample_request
from tests.integration.watching import client_lines, peak_bytes, reset_peak, resident_bytes
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import RawClient

MIB = 1 << 20
Logged = Callable[[RawClient], list[str]]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(api: int, version: int, *, client_id: bytes | None = b"x") -> bytes:
    text = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return struct.pack(">hhi", api, version, 1) + text


FRAMES = {
    "size -1": (struct.pack(">i", -1), "invalid request size -1"),
    "size 0": (struct.pack(">i", 0), "invalid request size 0"),
    "size of 2^31-1": (struct.pack(">i", 2**31 - 1), "over socket.request.max.bytes"),
    "size over the limit": (struct.pack(">i", 104_857_601), "over socket.request.max.bytes=104857600"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
    "TLS": (bytes.fromhex("16030100f8010000f40303") + bytes(32), "TLS"),
    "one byte": (framed(b"\0"), "header"),
    "header cut": (framed(struct.pack(">hh", 18, 0)), "header"),
    "client id longer than the frame": (framed(struct.pack(">hhih", 18, 0, 1, 100) + b"abc"), "header"),
    "unknown API": (framed(header(999, 0) + bytes(20)), "API key 999"),
    "negative API": (framed(header(-1, 0) + bytes(20)), "API key -1"),
    "API of a controller": (framed(header(4, 0) + bytes(20)), "API key 4"),
    "API that was removed": (framed(header(7, 0) + bytes(20)), "API key 7"),
    "telemetry": (framed(header(71, 0) + bytes(20)), "API key 71"),
    "unknown version": (framed(header(ApiKey.METADATA, 99) + bytes(20)), "Metadata version 99"),
    "array of 2^31-1": (framed(header(ApiKey.METADATA, 1) + struct.pack(">i", 2**31 - 1)), "Metadata"),
    "array longer than the frame": (framed(header(ApiKey.METADATA, 1) + struct.pack(">i", 5) + b"\0\1a"), "Metadata"),
    "null array that may not be null": (framed(header(ApiKey.METADATA, 0) + struct.pack(">i", -1)), "Metadata"),
    "name that is no text": (framed(header(ApiKey.METADATA, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe"), "Metadata"),
    "endless varint": (framed(header(ApiKey.METADATA, 9) + b"\0" + b"\xff" * 20), "Metadata"),
}


@pytest.mark.parametrize("name", list(FRAMES))
def test_a_bad_frame_closes_its_connection_with_one_line_in_the_log(
    connect: Connect, client: RawClient, logged: Logged, topic: str, name: str
) -> None:
    create_topic(client, topic)
    data, reason = FRAMES[name]
    victim = connect()
    victim.send_raw(data)
    assert victim.is_closed_by_peer()
    (line,) = logged(victim)
    assert reason in line
    assert "WARNING" in line
    send_values(client, topic, b"others go on")


def test_answers_before_a_bad_frame_are_still_sent(connect: Connect, client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    victim = connect()
    good = encode_request(ApiKey.PRODUCE, 12, 1, "x", produce_request(topic, {0: batch(b"kept")}))
    victim.send_raw(good + struct.pack(">i", -1))
    victim.recv_frame()
    assert victim.is_closed_by_peer()
    assert read_values(client, topic) == [b"kept"]


def test_a_frame_of_exactly_the_limit_is_taken_and_one_more_byte_is_not(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    broker = start_broker(socket_request_max_bytes="10000")
    client = connect(broker.port)
    create_topic(client, topic)
    overhead = len(encode_request(ApiKey.PRODUCE, 12, 1, "raw", produce_request(topic, {0: batch(b"x" * 9000)}))) - 4
    fitting = batch(b"x" * (9000 + 10_000 - overhead))
    whole = encode_request(ApiKey.PRODUCE, 12, 1, "raw", produce_request(topic, {0: fitting}))
    assert len(whole) - 4 == 10_000
    assert produce(client, topic, fitting).error_code == 0
    victim = connect(broker.port)
    victim.send_raw(struct.pack(">i", 10_001))
    assert victim.is_closed_by_peer()
    (line,) = client_lines(broker, victim)
    assert "request size 10001 is over socket.request.max.bytes=10000" in line


def test_a_huge_announced_frame_takes_no_memory_before_it_comes(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    """Ten clients announce 100 MB each and send nothing of it."""
    broker = start_broker(queued_max_request_bytes=str(150 * MIB))
    client = connect(broker.port)
    create_topic(client, topic)
    before = resident_bytes(broker)
    for _ in range(10):
        connect(broker.port).send_raw(struct.pack(">i", 100 * MIB) + header(ApiKey.PRODUCE, 12))
    send_values(client, topic, b"small requests go on")
    assert resident_bytes(broker) - before < 64 * MIB


LIES = [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x08"]


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=VERSION_NAMES)
def test_a_lying_length_at_any_place_does_no_harm(
    broker: PenstockBroker, connect: Connect, client: RawClient, topic: str, api: ApiKey, version: int
) -> None:
    """Huge and negative numbers over every place of a good request: answered or closed, in bounded time and memory."""
    topic_id = create_topic(client, topic)
    create_topic(client, f"{topic}-doomed")
    sample = Sample(topic=topic, topic_id=topic_id, free=f"{topic}-new", doomed=f"{topic}-doomed", doomed_id=topic_id)
    whole = encode_request(api, version, 1, "x", sample_request(api, version, sample))[4:]
    reset_peak(broker)
    before = resident_bytes(broker)
    for position in range(8, len(whole), 1 if len(whole) < 60 else 3):
        for lie in LIES if len(whole) < 60 else LIES[position // 3 % 4 :][:1]:
            changed = bytearray(whole)
            changed[position : position + len(lie)] = lie
            victim = connect()
            victim.send_raw(framed(bytes(changed)))
            # A long poll of 24 days is possible here; nobody waits for it who has nothing more to say.
            victim.socket.shutdown(socket.SHUT_WR)
            while victim.socket.recv(1 << 16):
                pass
            victim.close()
    assert peak_bytes(broker) - before < 64 * MIB
    assert describe_topics(client, topic)[0].error_code in (0, 3)


# -- Batches -------------------------------------------------------------------------------------------------------


def patched(data: bytes, position: int, form: str, value: int) -> bytes:
    """With a good CRC again."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, compute_crc(changed, 0, len(changed)))
    return bytes(changed)


def bad_batches() -> dict[str, tuple[bytes, int]]:
    good = batch(b"one", b"two", timestamp=now_ms())
    in_gzip = batch(b"one", b"two", timestamp=now_ms(), codec=Codec.GZIP)
    return {
        "bad CRC": (good[:-1] + b"!", 2),
        "count too high": (patched(good, 57, ">i", 3), 87),
        "count too low": (patched(good, 57, ">i", 1), 87),
        "count too high, compressed": (patched(in_gzip, 57, ">i", 3), 87),
        "count too low, compressed": (patched(in_gzip, 57, ">i", 1), 87),
        "count of 2^31-1": (patched(patched(good, 57, ">i", 2**31 - 1), 23, ">i", 2**31 - 2), 87),
        "wrong last offset delta": (patched(good, 23, ">i", 7), 87),
        "cut": (good[:-2], 87),
        "two batches": (good + good, 87),
        "old format": (patched(good, 16, "b", 1), 87),
        "control records": (batch(b"x", control=True), 87),
        "plain bytes that say they are gzip": (patched(good, 21, ">h", 1), 87),
        "unknown codec": (patched(good, 21, ">h", 6), 76),
        "record longer than the batch": (patched(good, 61, "B", 0x7E), 87),
        "from next week": (batch(b"x", timestamp=now_ms() + 7 * 86_400_000), 32),
        "too large": (batch(b"x" * 2_000_000), 10),
    }


@pytest.mark.parametrize("name", list(bad_batches()))
def test_a_bad_batch_is_refused_with_one_line_and_not_appended(
    client: RawClient, logged: Logged, topic: str, name: str
) -> None:
    create_topic(client, topic)
    records, code = bad_batches()[name]
    refused = produce(client, topic, records)
    assert (refused.error_code, refused.base_offset) == (code, -1)
    assert refused.error_message
    (line,) = logged(client)
    assert topic in line
    assert "client_id=raw" in line
    assert list_offset(client, topic, LATEST) == 0
    assert send_values(client, topic, b"good") == 0


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name)
def test_a_decompression_bomb_is_refused_in_bounded_memory(
    start_broker: StartBroker, connect: Connect, topic: str, codec: Codec
) -> None:
    """200 MB of zeros in less than a megabyte, while a broker opens 8 MB of a batch at most."""
    broker = start_broker({"penstock.max.decompressed.bytes": str(8 * MIB)})
    client = connect(broker.port)
    create_topic(client, topic)
    bomb = build_batch([Record(now_ms(), b"k", bytes(200 * MIB))], codec=codec)
    assert len(bomb) < 1_000_000
    before = resident_bytes(broker)
    reset_peak(broker)
    assert produce(client, topic, bomb).error_code == 10
    assert peak_bytes(broker) - before < 48 * MIB
    (line,) = client_lines(broker, client)
    assert "MESSAGE_TOO_LARGE" in line
    assert send_values(client, topic, b"good", codec=codec) == 0


# -- Topics --------------------------------------------------------------------------------------------------------


def test_an_invalid_topic_name_is_refused_with_one_line(client: RawClient, logged: Logged) -> None:
    request = CreateTopicsRequest(topics=[new_topic("no good\nname")], timeout_ms=1000)
    (result,) = client.call(ApiKey.CREATE_TOPICS, 7, request).topics
    assert result.error_code == 17
    assert "Topic name is invalid" in (result.error_message or "")
    (line,) = logged(client)
    assert "no good" in line


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("nonsense", "1"),
        ("retention.ms", "many"),
        ("retention.ms", "-2"),
        ("retention.ms", None),
        ("cleanup.policy", "shred"),
        ("segment.bytes", "1"),
        ("max.message.bytes", "-1"),
        ("min.insync.replicas", "0"),
        ("compression.type", "rar"),
        ("message.timestamp.type", "Lunar"),
        ("min.cleanable.dirty.ratio", "2"),
    ],
)
def test_an_invalid_setting_is_refused_with_one_line(
    client: RawClient, logged: Logged, topic: str, setting: str, value: str | None
) -> None:
    wrong = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=setting, value=value)],
    )
    (result,) = client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wrong], timeout_ms=1000)).topics
    assert result.error_code == 40
    assert setting in (result.error_message or "")
    (line,) = logged(client)
    assert setting in line
    assert describe_topics(client, topic)[0].error_code == 3


def test_log_lines_cannot_be_forged(broker: PenstockBroker, client: RawClient, logged: Logged) -> None:
    forged = "x\n2026-01-01 00:00:00,000 ERROR root forged"
    client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[new_topic(forged)], timeout_ms=1000))
    (line,) = logged(client)
    assert "forged" in line
    assert not any(line.endswith("forged") for line in broker.output().splitlines())
