"""POST /inserts-stream: rows in, one acknowledgement for each out, both while the request lasts.

Lines that arrive together are written together. The first row that cannot be written ends the stream: what follows it
may have been meant to come after it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from penstock.sql.errors import SqlError
from penstock.sql.parser import parse_name
from penstock.sql.server.errors import JSON, RequestError, describe_error
from penstock.sql.server.ports import SqlService
from penstock.sql.server.requests import DELIMITED, InsertsRequest, answer_type, check_content_type, decode, drain
from penstock.sql.server.row_formats import Framing, Lines, OneArray
from penstock.sql.server.streaming import ByteStream
from penstock.sql.server.values import encode
from penstock.sql.server.workers import Workers

LINE_BYTES_MAX: Final = 2 * 1024 * 1024


class InsertEndpoint:
    def __init__(self, service: SqlService, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    async def inserts_stream(self, request: Request) -> Response:
        check_content_type(request)
        media_type = answer_type(request, (DELIMITED, JSON))
        batches = _batches(request.stream())
        first: list[bytes] = await anext(batches, [])
        if not first:
            raise RequestError(40000, 'The first line of the request must be {"target": "NAME"}.')
        target = parse_name(decode(first[0], InsertsRequest).target)
        await self._workers.statement(self._service.insert_rows, target, [])
        framing: Framing = Lines() if media_type == DELIMITED else OneArray()
        return ByteStream(self._answers(request, target, first[1:], batches, framing), media_type)

    async def _answers(
        self, request: Request, target: str, first: list[bytes], batches: AsyncIterator[list[bytes]], framing: Framing
    ) -> AsyncIterator[bytes]:
        done = 0
        lines = first
        while True:
            results = await self._insert(target, lines) if lines else []
            # One by one: there are clients that take a chunk for an acknowledgement.
            for chunk in framing.more([_answer(done + index, error) for index, error in enumerate(results)]):
                yield chunk
            done += len(results)
            if any(results):
                break
            try:
                lines = await anext(batches)
            except (StopAsyncIteration, ClientDisconnect):
                break
            except RequestError as error:
                yield b"".join(framing.more([_answer(done, error)]))
                break
        yield b"".join(framing.last([]))
        await drain(request)

    async def _insert(self, target: str, lines: Sequence[bytes]) -> list[SqlError | None]:
        """One result for each line, up to the first that fails."""
        rows, bad = _decoded(lines)
        try:
            results = list(await self._workers.statement(self._service.insert_rows, target, rows))
        except SqlError as error:
            return [error]
        failed = next((index for index, result in enumerate(results) if result is not None), None)
        if failed is not None:
            return results[: failed + 1]
        return [*results, bad] if bad else results


def _decoded(lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], SqlError | None]:
    """The rows before the first line that is none, and what is wrong with that one."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        try:
            rows.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return rows, RequestError(40000, f"The line is not a JSON object: {error}.")
    return rows, None


def _answer(sequence: int, error: SqlError | None) -> bytes:
    if error is None:
        return encode({"status": "ok", "seq": sequence})
    described = describe_error(error)
    return encode(
        {"status": "error", "seq": sequence, "error_code": described["error_code"], "message": described["message"]}
    )


async def _batches(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of a body, those of a chunk together."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise RequestError(41300, f"A line is longer than {LINE_BYTES_MAX} bytes.")
        if found := [line for line in lines if line.strip()]:
            yield found
    if rest.strip():
        yield [rest]
