"""POST /ksql and /ksql/terminate."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.sql.engine.properties import check_property
from penstock.sql.server.errors import JSON, naming_statement
from penstock.sql.server.ports import SqlService
from penstock.sql.server.requests import (
    KSQL_JSON,
    KsqlRequest,
    TerminateRequest,
    answer_type,
    read_body,
    variables_of,
)
from penstock.sql.server.values import encode
from penstock.sql.server.workers import Workers


class StatementEndpoints:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def ksql(self, request: Request) -> Response:
        body = await read_body(request, KsqlRequest)
        media_type = answer_type(request, (JSON, KSQL_JSON))
        with naming_statement(body.ksql):
            # Whatever the statement does with them: one that needs none would hide a misspelt name.
            for name, value in (body.streams_properties or {}).items():
                check_property(name, value)
            entities = await self._workers.statement(
                self._service.execute,
                body.ksql,
                body.streams_properties or {},
                variables_of(body.session_variables),
                body.command_sequence_number,
            )
        return Response(encode(entities), media_type=media_type)

    async def terminate(self, request: Request) -> Response:
        body = await read_body(request, TerminateRequest)
        media_type = answer_type(request, (JSON, KSQL_JSON))
        entities = await self._workers.statement(self._service.terminate_cluster, body.delete_topic_list or [])
        return Response(encode(entities), media_type=media_type)
