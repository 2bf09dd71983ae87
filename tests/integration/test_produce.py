"""Produce: acks, order of pipelined requests, several partitions, and idempotent producers over restarts."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from penstock.protocol.requests import decode_response, encode_request
from penstock.records.batch import iter_batches
from penstock.records.compression import Codec
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    LATEST,
    batch,
    create_topic,
    delete_topic,
    fetch,
    list_offset,
    new_producer_id,
    produce,
    produce_request,
    read_all,
    read_values,
    send_values,
)
from tests.integration.sample_requests import Sample, sample_request
from tests.integration.watching import wait_for
from tests.support.raw_client import RawClient

Logged = Callable[[RawClient], list[str]]


def answer_of(client: RawClient, version: int = 12) -> ProduceResponse:
    answer = decode_response(ApiKey.PRODUCE, version, client.recv_frame())[1]
    assert isinstance(answer, ProduceResponse)
    return answer


# -- acks and order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_batch_can_be_read_at_once(client: RawClient, connect: Connect, topic: str, acks: int) -> None:
    create_topic(client, topic)
    reader = connect()
    for number in range(20):
        assert produce(client, topic, batch(b"%d" % number), acks=acks).base_offset == number
        assert fetch(reader, topic, number).high_watermark == number + 1


def test_acks_0_is_not_answered(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    for number in range(10):
        client.send(ApiKey.PRODUCE, 12, produce_request(topic, {0: batch(b"%d" % number)}, acks=0))
    # The next answer belongs to the next request that wants one.
    assert list_offset(client, topic, LATEST) == 10


@pytest.mark.parametrize("case", ["unknown topic", "bad batch"])
def test_a_failed_request_with_acks_0_closes_the_connection(
    client: RawClient, connect: Connect, logged: Logged, topic: str, case: str
) -> None:
    create_topic(client, topic)
    victim = connect()
    request = produce_request(topic, {0: batch(b"x")[:-1] + b"!"}, acks=0)
    if case == "unknown topic":
        request = produce_request(f"{topic}-missing", {0: batch(b"x")}, acks=0)
    victim.send(ApiKey.PRODUCE, 12, request)
    assert victim.is_closed_by_peer()
    (line,) = logged(victim)
    assert "acks=0" in line
    assert list_offset(client, topic, LATEST) == 0


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_invalid_acks(client: RawClient, topic: str, acks: int) -> None:
    create_topic(client, topic)
    assert produce(client, topic, batch(b"x"), acks=acks).error_code == 21
    assert list_offset(client, topic, LATEST) == 0


def test_pipelined_requests_are_appended_and_answered_in_order(client: RawClient, topic: str) -> None:
    """A thousand in one write, with slow ones (creating topics) among them."""
    create_topic(client, topic)
    frames, expected = [], []
    for number in range(1000):
        request = produce_request(topic, {0: batch(b"%d" % number)}, acks=0 if number % 10 == 9 else -1)
        frames.append(encode_request(ApiKey.PRODUCE, 9, number, "x", request))
        if number % 10 != 9:
            expected.append(number)
    client.send_raw(b"".join(frames))
    for number in expected:
        correlation_id, answer = decode_response(ApiKey.PRODUCE, 9, client.recv_frame())
        assert correlation_id == number
        assert answer.responses[0].partition_responses[0].base_offset == number
    assert read_values(client, topic) == [b"%d" % number for number in range(1000)]


def test_slow_requests_keep_their_place_among_quick_ones(client: RawClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    apis = [(ApiKey.CREATE_TOPICS, 7), (ApiKey.PRODUCE, 12), (ApiKey.INIT_PRODUCER_ID, 4), (ApiKey.FETCH, 12)] * 5
    sent = []
    for number, (api, version) in enumerate(apis):
        numbered = Sample(topic=topic, topic_id=topic_id, free=f"{topic}-{number}", doomed="", doomed_id=topic_id)
        sent.append(client.send(api, version, sample_request(api, version, numbered)))
    for (api, version), correlation_id in zip(apis, sent, strict=True):
        assert decode_response(api, version, client.recv_frame())[0] == correlation_id


def test_writers_of_one_partition_do_not_mix(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic)
    writers = [connect() for _ in range(4)]
    for number in range(50):
        for index, writer in enumerate(writers):
            writer.send(ApiKey.PRODUCE, 12, produce_request(topic, {0: batch(b"%d-%d" % (index, number))}))
    offsets = [
        answer_of(writer).responses[0].partition_responses[0].base_offset for writer in writers for _ in range(50)
    ]
    assert sorted(offsets) == list(range(200))
    found = read_values(client, topic)
    for index in range(4):
        mine = [value for value in found if value is not None and value.startswith(b"%d-" % index)]
        assert mine == [b"%d-%d" % (index, number) for number in range(50)]


# -- Several partitions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 9, 12])
def test_each_partition_has_its_own_result(client: RawClient, topic: str, version: int) -> None:
    create_topic(client, topic, partitions=3)
    other = f"{topic}-other"
    create_topic(client, other)
    data = {0: batch(b"a"), 1: batch(b"broken")[:-1] + b"!", 2: batch(b"c", b"d"), 7: batch(b"nowhere")}
    request = produce_request(topic, data)
    request.topic_data.append(
        TopicProduceData(name=other, partition_data=[PartitionProduceData(index=0, records=batch(b"e"))])
    )
    answer = client.call(ApiKey.PRODUCE, version, request)
    found = {
        (each.name, result.index): (result.error_code, result.base_offset)
        for each in answer.responses
        for result in each.partition_responses
    }
    assert found == {
        (topic, 0): (0, 0),
        (topic, 1): (2, -1),
        (topic, 2): (0, 0),
        (topic, 7): (3, -1),
        (other, 0): (0, 0),
    }
    assert [read_values(client, topic, partition=index) for index in range(3)] == [[b"a"], [], [b"c", b"d"]]


def test_produce_by_topic_id(client: RawClient, topic: str) -> None:
    topic_id = create_topic(client, topic, partitions=2)
    answer = client.call(ApiKey.PRODUCE, 13, produce_request(topic_id, {0: batch(b"a"), 1: batch(b"b")}))
    (result,) = answer.responses
    assert result.topic_id == topic_id
    assert [(each.index, each.error_code) for each in result.partition_responses] == [(0, 0), (1, 0)]
    delete_topic(client, topic)
    assert produce(client, topic_id, batch(b"late")).error_code == 100


def test_an_empty_request(client: RawClient) -> None:
    assert client.call(ApiKey.PRODUCE, 12, ProduceRequest(acks=-1)).responses == []


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
@pytest.mark.parametrize("kept_as", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_into_every_topic(client: RawClient, topic: str, codec: Codec, kept_as: str) -> None:
    create_topic(client, topic, compression_type=kept_as)
    assert send_values(client, topic, b"a" * 100, b"b" * 100, codec=codec) == 0
    assert read_values(client, topic) == [b"a" * 100, b"b" * 100]
    records = fetch(client, topic).records
    assert records is not None
    ((_, header),) = iter_batches(records)
    names = {"producer": codec, "uncompressed": Codec.NONE}
    assert header.codec is names.get(kept_as) or header.codec.name == kept_as.upper()


def test_log_append_time(client: RawClient, topic: str) -> None:
    create_topic(client, topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    result = produce(client, topic, batch(b"x", timestamp=1000))
    assert before <= result.log_append_time_ms <= int(time.time() * 1000)
    assert [record.timestamp for record in read_all(client, topic)] == [result.log_append_time_ms]


# -- Idempotent producers ------------------------------------------------------------------------------------------


class IdempotentProducer:
    """Sends batches with the sequences and the epoch it is told."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.producer_id = new_producer_id(client)

    def request(self, sequence: int, count: int = 1, epoch: int = 0) -> ProduceRequest:
        values = [b"%d" % (sequence + index) for index in range(count)]
        records = batch(*values, producer_id=self.producer_id, producer_epoch=epoch, base_sequence=sequence)
        return produce_request(self.topic, {0: records})

    def send(self, sequence: int, count: int = 1, epoch: int = 0) -> tuple[int, int]:
        """Error code and offset."""
        answer = self.client.call(ApiKey.PRODUCE, 12, self.request(sequence, count, epoch))
        result = answer.responses[0].partition_responses[0]
        return result.error_code, result.base_offset

    def log_end(self) -> int:
        return list_offset(self.client, self.topic, LATEST)


@pytest.fixture
def producer(client: RawClient, topic: str) -> IdempotentProducer:
    create_topic(client, topic)
    return IdempotentProducer(client, topic)


def test_five_in_flight_sent_twice_are_appended_once(producer: IdempotentProducer) -> None:
    for _ in range(2):
        for number in range(5):
            producer.client.send(ApiKey.PRODUCE, 12, producer.request(number * 2, 2))
        offsets = [answer_of(producer.client).responses[0].partition_responses[0].base_offset for _ in range(5)]
        assert offsets == [0, 2, 4, 6, 8]
    assert producer.log_end() == 10


def test_a_sixth_batch_back_is_no_longer_known(producer: IdempotentProducer) -> None:
    for number in range(6):
        assert producer.send(number) == (0, number)
    assert producer.send(0) == (45, -1)
    assert producer.send(1) == (0, 1)
    assert producer.log_end() == 6


def test_a_gap_is_refused_and_can_be_filled(producer: IdempotentProducer) -> None:
    assert producer.send(0) == (0, 0)
    assert producer.send(2) == (45, -1)
    assert producer.send(1) == (0, 1)
    assert producer.send(2) == (0, 2)


def test_a_pipelined_gap_fails_everything_behind_it(producer: IdempotentProducer) -> None:
    for sequence in (0, 1, 3, 4):
        producer.client.send(ApiKey.PRODUCE, 12, producer.request(sequence))
    codes = [answer_of(producer.client).responses[0].partition_responses[0].error_code for _ in range(4)]
    assert codes == [0, 0, 45, 45]


def test_a_new_epoch_starts_at_0_and_fences_the_old_one(producer: IdempotentProducer) -> None:
    assert producer.send(0) == (0, 0)
    assert producer.send(1, epoch=1)[0] == 45
    assert producer.send(0, epoch=1) == (0, 1)
    assert producer.send(1, epoch=0)[0] == 47


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_idempotence_survives_a_restart(start_broker: StartBroker, connect: Connect, topic: str, how: str) -> None:
    broker = start_broker()
    first = connect(broker.port)
    create_topic(first, topic)
    producer = IdempotentProducer(first, topic)
    for number in range(6):
        assert producer.send(number) == (0, number)
    getattr(broker, how)()
    broker.start()
    producer.client = connect(broker.port)
    # After a restart a broker knows the last batch of a producer, as Kafka does from its snapshots.
    assert producer.send(5) == (0, 5)
    assert producer.send(7)[0] == 45
    assert producer.send(6) == (0, 6)
    assert producer.send(0, epoch=1) == (0, 7)
    assert producer.send(7, epoch=0)[0] == 47
    assert new_producer_id(producer.client) > producer.producer_id
    getattr(broker, how)()
    broker.start()
    producer.client = connect(broker.port)
    assert producer.send(0, epoch=1) == (0, 7)
    assert producer.log_end() == 8


def test_a_producer_expires(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(
        {"producer.id.expiration.ms": "300", "producer.id.expiration.check.interval.ms": "50"},
    )
    client = connect(broker.port)
    create_topic(client, topic)
    producer = IdempotentProducer(client, topic)
    assert producer.send(0) == (0, 0)
    assert producer.send(5)[0] == 45
    # Forgotten, it is taken for an unknown producer, which may begin anywhere.
    wait_for(lambda: producer.send(5)[0] == 0, "the producer to expire")
