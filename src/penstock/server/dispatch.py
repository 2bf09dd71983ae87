"""From a frame to an answer: header, version, authorization, quota, handler, metrics.

A frame that cannot be understood (no such API, no such version, a body that does not decode) closes its connection, as
Kafka does: without a schema there is no answer the client could read. ApiVersions is the exception, because it is how a
client finds out; an unknown version of it is answered in version 0 with the range of ApiVersions itself (KIP-511).
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from types import CoroutineType
from typing import Any

from penstock.base import metric_names as names
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Counter, Histogram, Metrics
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import DecodeError
from penstock.protocol.requests import decode_request, encode_response, read_request_header
from penstock.security.authorizer import Authorizer
from penstock.security.quotas import Quotas
from penstock.server.api import Api, Context, Request
from penstock.server.handlers.api_versions import unsupported_version_response
from penstock.server.output import Answer, Ready
from penstock.server.session import CloseConnection, Session

MESSAGE_BYTES_MAX = 8 * 1024 * 1024
"""The largest request that is decoded into objects, which take many times its bytes. Records are never decoded, so
Produce is bounded by `socket.request.max.bytes` alone."""


class _ApiMetrics:
    """Kafka's request metrics of one API, looked up once."""

    __slots__ = ("errors", "requests", "time")

    def __init__(self, metrics: Metrics, api: Api) -> None:
        name = api.name
        self.time: Histogram = metrics.histogram(names.REQUEST_TOTAL_TIME_MS, request=name)
        self.errors: Counter = metrics.counter(names.ERRORS, request=name)
        self.requests: dict[int, Counter] = {
            version: metrics.counter(names.REQUESTS, request=name, version=str(version)) for version in api.versions
        }


class Dispatcher:
    def __init__(self, context: Context, apis: Sequence[Api], *, authorizer: Authorizer, quotas: Quotas) -> None:
        self._context = context
        self._monotonic = context.clock.monotonic
        self._authorize = authorizer.authorize
        self._charge = quotas.charge
        self._apis = {int(api.key): (api, _ApiMetrics(context.metrics, api)) for api in apis}

    def dispatch(self, session: Session, frame: memoryview) -> Answer:
        """Answer one request, now or later; raises CloseConnection when there is nothing to say to this client."""
        started = self._monotonic()
        try:
            header = read_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"the request header cannot be read: {error}") from None
        api_key, api_version, correlation_id, client_id, position = header
        found = self._apis.get(api_key)
        if found is None:
            raise CloseConnection(f"API key {api_key} is not served")
        api, metrics = found
        counter = metrics.requests.get(api_version)
        if counter is None:
            return self._refuse_version(api, api_version, correlation_id)
        counter.value += 1
        throttle_ms = self._charge(session.principal, client_id, api_key, len(frame))
        request = Request(session, frame, position, api_version, correlation_id, client_id, throttle_ms)
        if not self._authorize(session.principal, api.requirements):
            metrics.errors.value += 1
            return self._error_frame(api, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        try:
            if api.handle_raw is not None:
                answer = api.handle_raw(self._context, request)
                if type(answer) is CoroutineType:
                    return self._context.tasks.spawn(
                        self._finish_raw(api, metrics, request, answer, started), name=api.name
                    )
            else:
                if len(frame) > MESSAGE_BYTES_MAX:
                    raise CloseConnection(f"a {api.name} request of {len(frame)} bytes is too large")
                message = decode_request(api.key, api_version, frame, position)
                answer = self._handle_message(api, metrics, request, message, started)
        except DecodeError as error:
            raise CloseConnection(f"{api.name} request version {api_version} cannot be read: {error}") from None
        metrics.time.record(self._monotonic() - started)
        return answer

    def _handle_message(self, api: Api, metrics: _ApiMetrics, request: Request, message: Any, started: float) -> Answer:
        assert api.handle is not None
        try:
            result = api.handle(self._context, request, message)
        except KafkaError as error:
            metrics.errors.value += 1
            return self._error_frame(api, request, error.code)
        if type(result) is CoroutineType:
            work = self._finish_message(api, metrics, request, result, started)
            return self._context.tasks.spawn(work, name=api.name)
        return encode_response(api.key, request.api_version, request.correlation_id, result)

    async def _finish_message(
        self, api: Api, metrics: _ApiMetrics, request: Request, work: Coroutine[Any, Any, Any], started: float
    ) -> bytes:
        try:
            result = await work
        except KafkaError as error:
            metrics.errors.value += 1
            return self._error_frame(api, request, error.code)
        metrics.time.record(self._monotonic() - started)
        return encode_response(api.key, request.api_version, request.correlation_id, result)

    async def _finish_raw(
        self, api: Api, metrics: _ApiMetrics, request: Request, work: Coroutine[Any, Any, Ready | None], started: float
    ) -> Ready | None:
        try:
            answer = await work
        except CloseConnection as closing:
            request.session.close(closing.reason)
            return None
        metrics.time.record(self._monotonic() - started)
        return answer

    def _refuse_version(self, api: Api, api_version: int, correlation_id: int) -> bytes:
        if api.key is ApiKey.API_VERSIONS:
            return unsupported_version_response(api, correlation_id)
        raise CloseConnection(
            f"{api.name} version {api_version} is not served, only {api.versions.start} to {api.versions.stop - 1}"
        )

    def _error_frame(self, api: Api, request: Request, code: ErrorCode) -> bytes:
        if api.error_response is not None:
            message = api.error_response(code)
        else:
            message = APIS[api.key].response_class()(error_code=code)
        return encode_response(api.key, request.api_version, request.correlation_id, message)
