"""Responses that are sent piece by piece: the rows of a query for as long as it runs, or whatever bytes come.

Rows are taken only when the last ones are on their way: a client that does not read holds back its own query and
nothing else. A client that leaves ends its query at once, whether rows come or not.

Rows are sent one by one: there are clients that take a chunk, or a DATA frame of HTTP/2, for a row. Only those of a
pull query over HTTP/1.1 go together, which is many times quicker: its clients read the whole answer, or lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.sql.server.ports import RunningQuery
from penstock.sql.server.row_formats import Framing, Shape
from penstock.sql.server.workers import Workers

ROWS_PER_CHUNK_MAX: Final = 1_000
TAKE_TIMEOUT_S: Final = 1.0


class ByteStream(Response):
    """Sends what it is given. The request's body is left to whoever makes the bytes, who also sees the client leave."""

    def __init__(self, chunks: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(media_type=media_type)
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        async for chunk in self._chunks:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                # Over HTTP/2 another task puts what was sent into a frame, whatever has come together until then.
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class RowStream(ByteStream):
    """`idle` is sent when no row came for a while: it tells some clients that the query lives, and the server that the
    client does.
    """

    def __init__(
        self,
        query: RunningQuery,
        shape: Shape,
        framing: Framing,
        workers: Workers,
        media_type: str,
        *,
        idle: bytes = b"",
    ) -> None:
        super().__init__(self._chunks_of(shape, framing, idle), media_type)
        self._query = query
        self._workers = workers
        self._together = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._together = self._query.kind == "PULL" and scope["http_version"] != "2"
        sending = asyncio.ensure_future(super().__call__(scope, receive, send))
        leaving = asyncio.ensure_future(_wait_for_leaving(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            self._workers.later(self._query.close)

    async def _chunks_of(self, shape: Shape, framing: Framing, idle: bytes) -> AsyncIterator[bytes]:
        yield b"".join(framing.more(shape.head()))
        try:
            while (rows := await self._workers.query(self._query.take, ROWS_PER_CHUNK_MAX, TAKE_TIMEOUT_S)) is not None:
                chunks = framing.more(shape.rows(rows)) if rows else [idle]
                for chunk in [b"".join(chunks)] if self._together else chunks:
                    yield chunk
            ending = shape.end()
        except Exception as error:  # noqa: BLE001 - headers are sent: whatever ended the query is told in the body
            ending = shape.failure(error)
        yield b"".join(framing.last(ending))


async def _wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
