"""A server on a real socket that does whatever a test's script says."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from penstock.network.address import Address
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.requests import RequestHeader, encode_response, read_request_header


class Peer:
    """One connection, as the server sees it."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        """Which connection this is, from 0."""
        self.reader = reader
        self.writer = writer

    async def request(self) -> RequestHeader:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return read_request_header(await self.reader.readexactly(size))

    async def greet(self) -> None:
        """Agree on versions like a good broker."""
        header = await self.request()
        assert header.api_key == ApiKey.API_VERSIONS
        served = [
            ApiVersion(api_key=api.key, min_version=api.lowest_version, max_version=api.highest_version)
            for api in APIS.values()
        ]
        self.answer(header, ApiVersionsResponse(api_keys=served))

    def frame(self, header: RequestHeader, response: object) -> bytes:
        return encode_response(header.api_key, header.api_version, header.correlation_id, response)

    def answer(self, header: RequestHeader, response: object) -> None:
        self.writer.write(self.frame(header, response))

    async def answer_all(self, response: object) -> None:
        while True:
            self.answer(await self.request(), response)

    def reset(self) -> None:
        """End it with a TCP reset instead of a good-bye."""
        raw: Any = self.writer.get_extra_info("socket")
        raw.setsockopt(1, 13, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def misbehaving(script: Script) -> AsyncIterator[Address]:
    """Runs the script for every connection; a connection is closed when its script ends."""
    peers: list[Peer] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        peers.append(Peer(len(peers), reader, writer))
        try:
            await script(peers[-1])
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
