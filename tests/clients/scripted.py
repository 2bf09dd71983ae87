"""A broker that says what the test tells it to: one topic, one partition, one node, over a real socket."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from penstock.protocol.requests import decode_request, encode_response, read_request_header

TOPIC = "scripted"
TOPIC_ID = UUID(int=42)
SILENT = object()
"""An answer that never comes; the connection stays open."""
HANG_UP = object()

Handler = Callable[[Any], Any]


class ScriptedBroker:
    """`on_fetch(request) -> PartitionData | SILENT | HANG_UP` is asked for every fetch; the rest answers by itself."""

    def __init__(self, on_fetch: Callable[[FetchRequest], Any], *, fetch_version_max: int = 18) -> None:
        self.on_fetch = on_fetch
        self.fetch_version_max = fetch_version_max
        self.leader_epoch = 3
        self.epoch_end = (3, 1_000)
        self.followers: dict[int, int] = {}
        """Ports of other nodes, by their ids; this one is node 1 and leads."""
        self.requests: list[tuple[int, Any]] = []
        self.fetches: list[FetchRequest] = []
        self._stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._serve)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ScriptedBroker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _serve(self, connection: socket.socket) -> None:
        while (frame := _read_frame(connection)) is not None:
            header = read_request_header(frame)
            request = decode_request(header.api_key, header.api_version, frame, header.body_position)
            self.requests.append((header.api_key, request))
            answer = self._handlers()[ApiKey(header.api_key)](request)
            if answer is HANG_UP:
                return
            if answer is SILENT:
                self._stopped.wait(30)
                return
            connection.sendall(encode_response(header.api_key, header.api_version, header.correlation_id, answer))

    def _handlers(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.API_VERSIONS: self._versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._epochs,
            ApiKey.FETCH: self._fetch,
        }

    def _versions(self, _: Any) -> ApiVersionsResponse:
        served = [
            ApiVersion(api_key=key, min_version=APIS[key].lowest_version, max_version=APIS[key].highest_version)
            for key in self._handlers()
        ]
        for each in served:
            if each.api_key == ApiKey.FETCH:
                each.max_version = self.fetch_version_max
        return ApiVersionsResponse(api_keys=served)

    def _metadata(self, _: Any) -> MetadataResponse:
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=1, leader_epoch=self.leader_epoch, replica_nodes=[1], isr_nodes=[1]
        )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port)
                for node, port in {1: self.port, **self.followers}.items()
            ],
            cluster_id="scripted",
            controller_id=1,
            topics=[MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _list_offsets(self, _: Any) -> ListOffsetsResponse:
        found = ListOffsetsPartitionResponse(partition_index=0, offset=0, leader_epoch=-1)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[found])])

    def _epochs(self, _: Any) -> OffsetForLeaderEpochResponse:
        epoch, end = self.epoch_end
        found = EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=end)
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=[found])])

    def _fetch(self, request: FetchRequest) -> Any:
        self.fetches.append(request)
        answer = self.on_fetch(request)
        if not isinstance(answer, PartitionData):
            return answer
        topic = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[answer])
        return FetchResponse(responses=[topic])


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], serve: Callable[[socket.socket], None]) -> None:
        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    serve(self.request)
                except OSError:
                    pass

        super().__init__(address, Connection)


def _read_frame(connection: socket.socket) -> bytes | None:
    size = _read_exactly(connection, 4)
    return None if size is None else _read_exactly(connection, struct.unpack(">i", size)[0])


def _read_exactly(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            return None
        data += more
    return data
