"""POST /internal/tables/NAME/rows: rows of a table for Spark's executors on other machines, in Arrow's form."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.sql.server.ports import SqlService
from penstock.sql.server.requests import read_bytes
from penstock.sql.server.workers import Workers

KEYS_BYTES_MAX: Final = 256 * 1024 * 1024
ARROW: Final = "application/vnd.apache.arrow.stream"


class LookupEndpoint:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def rows(self, request: Request) -> Response:
        question = await read_bytes(request, KEYS_BYTES_MAX)
        found = await self._workers.query(self._service.find_rows, request.path_params["name"], question)
        return Response(found, media_type=ARROW)
