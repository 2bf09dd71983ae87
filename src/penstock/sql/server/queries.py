"""POST /query, /query-stream and /close-query."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.sql.errors import NotFoundError
from penstock.sql.server.errors import JSON, RequestError, naming_statement
from penstock.sql.server.ports import RunningQuery, SqlService
from penstock.sql.server.requests import (
    DELIMITED,
    KSQL_JSON,
    CloseQueryRequest,
    KsqlRequest,
    QueryStreamRequest,
    answer_type,
    read_body,
    variables_of,
)
from penstock.sql.server.row_formats import (
    ArrayOfLines,
    Framing,
    Lines,
    OneArray,
    PrintShape,
    QueryShape,
    Shape,
    StreamShape,
)
from penstock.sql.server.streaming import RowStream
from penstock.sql.server.workers import Workers

_LIMIT: Final = re.compile(r"\bLIMIT\s+(\d+)\s*;?\s*$", re.IGNORECASE)


class QueryEndpoints:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def query(self, request: Request) -> Response:
        body = await read_body(request, KsqlRequest)
        media_type = answer_type(request, (KSQL_JSON, JSON, DELIMITED))
        query = await self._open(body.ksql, body.streams_properties, body.session_variables)
        return self._stream(query, QueryShape(query, _limit(body.ksql)), media_type, idle=b"\n")

    async def query_stream(self, request: Request) -> Response:
        body = await read_body(request, QueryStreamRequest)
        media_type = answer_type(request, (DELIMITED, JSON, KSQL_JSON))
        properties = {**(body.streams_properties or {}), **(body.properties or {})}
        query = await self._open(body.sql, properties, body.session_variables)
        shape: Shape = StreamShape(query)
        if media_type == KSQL_JSON:
            shape = QueryShape(query, _limit(body.sql))
        return self._stream(query, shape, media_type)

    async def close_query(self, request: Request) -> Response:
        body = await read_body(request, CloseQueryRequest)
        try:
            await self._workers.statement(self._service.close_query, body.query_id)
        except NotFoundError as error:
            # The path is there: ksqlDB blames the request, and its clients look for that.
            raise RequestError(40000, str(error)) from None
        return Response()

    async def _open(
        self, text: str, properties: dict[str, Any] | None, variables: dict[str, Any] | None
    ) -> RunningQuery:
        with naming_statement(text):
            return await self._workers.query(self._service.open_query, text, properties or {}, variables_of(variables))

    def _stream(self, query: RunningQuery, shape: Shape, media_type: str, *, idle: bytes = b"") -> Response:
        if query.kind == "PRINT":
            return RowStream(query, PrintShape(), Lines(), self._workers, "text/plain; charset=utf-8", idle=idle)
        framing: Framing = OneArray()
        if media_type == DELIMITED:
            framing = Lines()
        elif isinstance(shape, QueryShape):
            framing = ArrayOfLines(is_ended_by_word=query.kind == "PUSH")
        return RowStream(query, shape, framing, self._workers, media_type, idle=idle)


def _limit(text: str) -> int | None:
    found = _LIMIT.search(text)
    return int(found[1]) if found else None
