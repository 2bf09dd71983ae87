"""GET /info, /healthcheck, /status and what else tells how the server is."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

import penstock
from penstock.sql.errors import NotFoundError
from penstock.sql.server.config import KEYS as SERVER_KEYS
from penstock.sql.server.errors import JSON, RequestError
from penstock.sql.server.ports import SqlService
from penstock.sql.server.requests import KSQL_JSON, answer_type
from penstock.sql.server.values import encode
from penstock.sql.server.workers import Workers


class StatusEndpoints:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def root(self, _: Request) -> Response:
        return RedirectResponse("/info", status_code=307)

    async def info(self, request: Request) -> Response:
        info = {
            "version": penstock.__version__,
            "kafkaClusterId": self._service.kafka_cluster_id,
            "ksqlServiceId": self._service.service_id,
            "serverStatus": "RUNNING" if self._service.ready else "INITIALIZING",
        }
        return _answer(request, {"KsqlServerInfo": info})

    async def healthcheck(self, request: Request) -> Response:
        parts = await self._workers.statement(self._service.health)
        healthy = all(parts.values())
        details = {name: {"isHealthy": part} for name, part in parts.items()}
        return _answer(request, {"isHealthy": healthy, "details": details}, status_code=200 if healthy else 503)

    async def statuses(self, request: Request) -> Response:
        statuses = await self._workers.statement(self._service.command_statuses)
        return _answer(request, {"commandStatuses": {name: each["status"] for name, each in statuses.items()}})

    async def status(self, request: Request) -> Response:
        name = "/".join(request.path_params[part] for part in ("type", "entity", "action"))
        statuses = await self._workers.statement(self._service.command_statuses)
        if name not in statuses:
            raise NotFoundError(f"There is no command {name}.", hint="GET /status lists those there are.")
        return _answer(request, statuses[name])

    async def is_valid_property(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name in SERVER_KEYS or not await self._workers.statement(self._service.is_valid_property, name):
            raise RequestError(
                40000, f"{name} is not a property that can be set here. SHOW PROPERTIES; lists those there are."
            )
        return _answer(request, True)

    async def metadata(self, request: Request) -> Response:
        return _answer(request, {"version": penstock.__version__, "clusterId": self._cluster_id()})

    async def metadata_id(self, request: Request) -> Response:
        return _answer(request, self._cluster_id())

    async def cluster_status(self, request: Request) -> Response:
        """This server alone: servers do not watch one another yet."""
        host = request.url.netloc
        alive = {
            "hostAlive": True,
            "lastStatusUpdateMs": time.time_ns() // 1_000_000,
            "activeStandbyPerQuery": {},
            "hostStoreLags": {"stateStoreLags": {}, "updateTimeMs": 0},
        }
        return _answer(request, {"clusterStatus": {host: alive}})

    def _cluster_id(self) -> dict[str, Any]:
        clusters = {"kafka-cluster": self._service.kafka_cluster_id, "ksql-cluster": self._service.service_id}
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}


def _answer(request: Request, body: Any, status_code: int = 200) -> Response:
    return Response(encode(body), status_code=status_code, media_type=answer_type(request, (JSON, KSQL_JSON)))
