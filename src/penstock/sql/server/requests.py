"""Requests as values: their bodies checked, their sizes bounded, and the form of answer the client wants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from penstock.sql.server.errors import JSON, RequestError

T = TypeVar("T", bound=msgspec.Struct)

KSQL_JSON: Final = "application/vnd.ksql.v1+json"
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
DRAIN_S: Final = 5.0

_READ: Final = {KSQL_JSON, JSON, DELIMITED, "application/x-www-form-urlencoded", "text/plain", ""}
"""What a body may call itself; the last three are what clients send that never thought about it, such as curl -d."""


class Body(msgspec.Struct, rename="camel"):
    """Fields that are not named here are ignored, as ksqlDB does."""


class KsqlRequest(Body):
    ksql: str
    streams_properties: dict[str, Any] | None = None
    session_variables: dict[str, Any] | None = None
    command_sequence_number: int | None = None


class QueryStreamRequest(Body):
    sql: str
    properties: dict[str, Any] | None = None
    streams_properties: dict[str, Any] | None = None
    session_variables: dict[str, Any] | None = None


class CloseQueryRequest(Body):
    query_id: str


class TerminateRequest(Body):
    delete_topic_list: list[str] | None = None


class InsertsRequest(Body):
    target: str
    properties: dict[str, Any] | None = None


def variables_of(given: Mapping[str, Any] | None) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in (given or {}).items()
    }


async def read_body(request: Request, kind: type[T]) -> T:
    check_content_type(request)
    return decode(await read_bytes(request, BODY_BYTES_MAX), kind)


async def read_bytes(request: Request, size_max: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > size_max:
            raise RequestError(41300, f"The request is larger than {size_max} bytes: split it.")
    return bytes(body)


async def drain(request: Request) -> None:
    """Reads what is left of a body, before an answer that does not need it.

    An answer that ends while its request still comes would cost an HTTP/2 client its whole connection: the server
    underneath has forgotten the stream when the next piece arrives. A client that never ends is not waited for.
    """
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in request.stream():
                pass


def decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise RequestError(40000, f"The request's JSON does not fit: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(40000, f"The request is not JSON: {error}.") from None


def check_content_type(request: Request) -> None:
    given = _media_type(request.headers.get("content-type", ""))
    if given not in _READ:
        raise RequestError(41500, f"A body of {given} is not read: send {KSQL_JSON} or {JSON}.")


def answer_type(request: Request, offered: Sequence[str]) -> str:
    """The first of the types the client accepts that is offered; the first offered when it does not care."""
    accepted = [_media_type(part) for part in request.headers.get("accept", "*/*").split(",")]
    for each in accepted:
        if each in ("*/*", "", "application/*"):
            return offered[0]
        if each in offered:
            return each
    raise RequestError(40600, f"{', '.join(accepted)} is not offered here: accept {' or '.join(offered)}.")


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()
