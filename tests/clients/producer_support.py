"""What the producer's live tests look at the outcome with: another client's consumer, and a broker that is a script."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

import confluent_kafka

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from penstock.protocol.requests import decode_request, encode_response, read_request_header

READ_TIMEOUT_S = 60.0
TOPIC_ID = UUID(int=7)


class Seen(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


def read_all(bootstrap: str, topic: str, partitions: int = 1) -> list[Seen]:
    """Every record of a topic, by partition and offset."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        return _read_partitions(consumer, topic, partitions)
    finally:
        consumer.close()


def _read_partitions(consumer: confluent_kafka.Consumer, topic: str, partitions: int) -> list[Seen]:
    """All at once: librdkafka was seen to give nothing for a minute of a partition that was assigned after others."""
    starts = [confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)]
    ends = {each.partition: consumer.get_watermark_offsets(each, timeout=READ_TIMEOUT_S)[1] for each in starts}
    consumer.assign([each for each in starts if ends[each.partition]])
    found: list[Seen] = []
    left = {partition: end for partition, end in ends.items() if end}
    deadline = time.monotonic() + READ_TIMEOUT_S
    while left:
        assert time.monotonic() < deadline, f"{topic}: read {len(found)} records; not at the end of {left}"
        for message in consumer.consume(10_000, 0.2):
            found.append(_seen(message))
            if found[-1].offset + 1 >= ends[found[-1].partition]:
                left.pop(found[-1].partition, None)
    return sorted(found, key=lambda each: each[:2])


def _seen(message: Any) -> Seen:
    assert message.error() is None, message.error()
    return Seen(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )


OnProduce = Callable[["ScriptedBroker", Any, int], PartitionProduceResponse | None]
"""(broker, request, how many came before) -> the answer for its one partition, or None for silence."""


class ScriptedBroker:
    """A server that plays one or several nodes of a cluster with one topic of one partition, as its script says."""

    def __init__(self, on_produce: OnProduce, nodes: int = 1) -> None:
        self._on_produce = on_produce
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(nodes)]
        self.ports: list[int] = [each.getsockname()[1] for each in self._listeners]
        self.leader = 0
        self.leader_epoch = 1
        self.produced: list[tuple[int, Any]] = []
        """(node, request) in the order of arrival."""
        self.topic = "scripted"
        self._sockets: list[socket.socket] = []
        for node, listener in enumerate(self._listeners):
            threading.Thread(target=self._accept, args=(node, listener), daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def _accept(self, node: int, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            threading.Thread(target=self._serve, args=(node, client), daemon=True).start()

    def _serve(self, node: int, client: socket.socket) -> None:
        stream = client.makefile("rb")
        try:
            while size := stream.read(4):
                frame = stream.read(struct.unpack(">i", size)[0])
                header = read_request_header(frame)
                request = decode_request(header.api_key, header.api_version, frame, header.body_position)
                answer = self._answer(node, header.api_key, request)
                if answer is not None:
                    client.sendall(encode_response(header.api_key, header.api_version, header.correlation_id, answer))
        except (OSError, ValueError):
            pass

    def _answer(self, node: int, api_key: int, request: Any) -> object | None:
        if api_key == ApiKey.API_VERSIONS:
            served = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE)
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=APIS[key].lowest_version, max_version=APIS[key].highest_version)
                    for key in served
                ]
            )
        if api_key == ApiKey.METADATA:
            return self._metadata()
        if api_key == ApiKey.INIT_PRODUCER_ID:
            return InitProducerIdResponse(producer_id=4, producer_epoch=0)
        self.produced.append((node, request))
        answer = self._on_produce(self, request, len(self.produced) - 1)
        if answer is None:
            return None
        return ProduceResponse(
            responses=[TopicProduceResponse(topic_id=TOPIC_ID, name=self.topic, partition_responses=[answer])]
        )

    def _metadata(self) -> MetadataResponse:
        partition = MetadataResponsePartition(
            leader_id=self.leader, leader_epoch=self.leader_epoch, replica_nodes=[0], isr_nodes=[0]
        )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port)
                for node, port in enumerate(self.ports)
            ],
            topics=[MetadataResponseTopic(name=self.topic, topic_id=TOPIC_ID, partitions=[partition])],
        )

    def close(self) -> None:
        for each in (*self._listeners, *self._sockets):
            each.close()
