"""Whatever goes wrong, as one shape of answer: an error code whose first three digits are the HTTP status."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from penstock.base.errors import KafkaError
from penstock.sql.errors import EngineError, SqlError

log = logging.getLogger(__name__)

JSON: Final = "application/json"
HEADERS: Final = {"Content-Type": JSON}


class RequestError(SqlError):
    """The request, rather than a statement in it, is at fault."""

    def __init__(self, code: int, message: str):
        self.code = code
        super().__init__(message)


@contextmanager
def naming_statement(text: str) -> Iterator[None]:
    """A bad statement is told with its text, also when it could not be told from others: its error has that type."""
    try:
        yield
    except SqlError as error:
        if error.code == SqlError.code and error.statement_text is None:
            error.statement_text = text
        raise


def describe_error(error: Exception) -> dict[str, Any]:
    """The answer's body. What is a fault of ours is logged and told without its inside."""
    known = _known(error)
    body = {"@type": "generic_error", "error_code": known.code, "message": str(known)}
    statement = getattr(known, "statement_text", None)
    if statement is not None:
        body |= {"@type": "statement_error", "statementText": statement, "entities": getattr(known, "entities", [])}
    return body


def _known(error: Exception) -> SqlError:
    if isinstance(error, SqlError):
        return error
    if isinstance(error, KafkaError):
        return EngineError(f"The Kafka cluster did not do its part: {error}")
    log.error("A request failed", exc_info=error)
    return EngineError("The server failed while it worked on the request.", hint="Its log says more.")


def error_response(error: Exception) -> Response:
    body = describe_error(error)
    return Response(msgspec.json.encode(body), status_code=body["error_code"] // 100, headers=HEADERS)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the router refuses: an unknown path, or a method the path does not have."""
    assert isinstance(error, HTTPException)
    wanted = f"{request.method} {request.url.path}"
    message = {
        404: f"There is nothing at {request.url.path}. Statements go to POST /ksql, queries to POST /query-stream.",
        405: f"{wanted} is not possible: the path takes {(error.headers or {}).get('Allow', 'another method')}.",
    }.get(error.status_code, f"{wanted}: {error.detail}")
    response = error_response(RequestError(error.status_code * 100, message))
    response.headers.update(error.headers or {})
    return response
