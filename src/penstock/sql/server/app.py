"""The application: all endpoints in one table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.sql.server.errors import error_response, on_http_error
from penstock.sql.server.inserts import InsertEndpoint
from penstock.sql.server.lookups import LookupEndpoint
from penstock.sql.server.ports import SqlService
from penstock.sql.server.queries import QueryEndpoints
from penstock.sql.server.requests import drain
from penstock.sql.server.statements import StatementEndpoints
from penstock.sql.server.status import StatusEndpoints
from penstock.sql.server.websocket import WebSocketEndpoint
from penstock.sql.server.workers import Workers

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(service: SqlService, workers: Workers) -> Starlette:
    """Every endpoint answers errors in the same shape."""
    statements = StatementEndpoints(service, workers)
    queries = QueryEndpoints(service, workers)
    status = StatusEndpoints(service, workers)
    posts = {
        "/ksql": statements.ksql,
        "/ksql/terminate": statements.terminate,
        "/query": queries.query,
        "/query-stream": queries.query_stream,
        "/close-query": queries.close_query,
        "/inserts-stream": InsertEndpoint(service, workers).inserts_stream,
        "/internal/tables/{name}/rows": LookupEndpoint(service, workers).rows,
    }
    gets = {
        "/": status.root,
        "/info": status.info,
        "/healthcheck": status.healthcheck,
        "/status": status.statuses,
        "/status/{type}/{entity}/{action}": status.status,
        "/is_valid_property/{name}": status.is_valid_property,
        "/clusterStatus": status.cluster_status,
        "/v1/metadata": status.metadata,
        "/v1/metadata/id": status.metadata_id,
    }
    routes: list[BaseRoute] = [
        *(Route(path, _reporting(endpoint), methods=["POST"]) for path, endpoint in posts.items()),
        *(Route(path, _reporting(endpoint)) for path, endpoint in gets.items()),
        WebSocketRoute("/ws/query", WebSocketEndpoint(service, workers).query),
    ]
    middleware = [Middleware(_PathOfWholeAddress)]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: on_http_error})


class _PathOfWholeAddress:
    """A request may name its whole address (RFC 9112, 3.2.2); the Python client `ksql` does, hypercorn leaves it so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(("http://", "https://")):
            path = urlsplit(scope["path"]).path or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


def _reporting(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response()
        except Exception as error:  # noqa: BLE001 - the client is told of any failure, and the log has the rest
            await drain(request)
            return error_response(error)

    return answer
