"""WS /ws/query?request={"ksql": ...}: the schema, then a message for each row; the close code says how it ended."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from penstock.sql.errors import SqlError
from penstock.sql.server.errors import describe_error
from penstock.sql.server.ports import RunningQuery, SqlService
from penstock.sql.server.requests import KsqlRequest, decode, variables_of
from penstock.sql.server.row_formats import PrintShape, QueryShape, Shape
from penstock.sql.server.streaming import ROWS_PER_CHUNK_MAX, TAKE_TIMEOUT_S
from penstock.sql.server.values import encode
from penstock.sql.server.workers import Workers
from penstock.sql.types import describe

_NORMAL, _BAD_REQUEST = 1000, 1003
_REASON_BYTES_MAX = 123
"""What a closing frame has room for."""


class WebSocketEndpoint:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def query(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            request = decode(socket.query_params.get("request", "").encode(), KsqlRequest)
            query = await self._workers.query(
                self._service.open_query,
                request.ksql,
                request.streams_properties or {},
                variables_of(request.session_variables),
            )
        except SqlError as error:
            await _close(socket, _BAD_REQUEST, str(error))
            return
        sending = asyncio.ensure_future(self._send_all(socket, query))
        leaving = asyncio.ensure_future(_wait_for_leaving(socket))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            self._workers.later(query.close)

    async def _send_all(self, socket: WebSocket, query: RunningQuery) -> None:
        shape: Shape = PrintShape() if query.kind == "PRINT" else QueryShape(query)
        if query.kind != "PRINT":
            await socket.send_text(encode(_schema(query)).decode())
        try:
            while (rows := await self._workers.query(query.take, ROWS_PER_CHUNK_MAX, TAKE_TIMEOUT_S)) is not None:
                for piece in shape.rows(rows):
                    await socket.send_text(piece.decode())
        except SqlError as error:
            await _close(socket, _BAD_REQUEST, str(describe_error(error)["message"]))
            return
        await _close(socket, _NORMAL, "done")


def _schema(query: RunningQuery) -> list[dict[str, Any]]:
    return [
        {"name": name, "schema": describe(sql_type), **({"type": "KEY"} if name in query.key_columns else {})}
        for name, sql_type in query.columns
    ]


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    await socket.close(code, reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore"))


async def _wait_for_leaving(socket: WebSocket) -> None:
    try:
        while True:
            await socket.receive_text()
    except WebSocketDisconnect:
        pass
