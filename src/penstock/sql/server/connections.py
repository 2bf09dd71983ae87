"""hypercorn's connections, adjusted to answers that have no end and to clients that do not say good-bye.

hypercorn has no settings for what is done here: `adjust_hypercorn` puts these classes in the place of its own.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
import hypercorn.asyncio.run
import hypercorn.protocol.h11
from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol

LAST_WORDS_S: Final = 5.0
"""How long answers under way may take when the server stops."""


def adjust_hypercorn() -> None:
    vars(hypercorn.asyncio.run)["TCPServer"] = Connection
    vars(hypercorn.protocol.h11)["h11"] = _H11WithReasons()


class Connection(TCPServer):
    """Ends with its client, and with the server."""

    _client_has_gone = False

    async def run(self) -> None:
        stopping = asyncio.ensure_future(self._stop_with_the_server())
        try:
            await super().run()
        finally:
            stopping.cancel()

    async def _stop_with_the_server(self) -> None:
        """A client that does not read would hold the server back for ever: closing waits for what is not yet sent."""
        await self.context.terminated.wait()
        await asyncio.sleep(LAST_WORDS_S)
        self.writer.transport.abort()

    async def _read_data(self) -> None:
        """Until the client has gone. What would still wait for it then is told."""
        await self._handle_all()
        self._client_has_gone = True
        await self.protocol.handle(Closed())
        await self.idle_task.stop()
        protocol = self.protocol.protocol
        if isinstance(protocol, H2Protocol):
            # Answers to it wait here for being sent, and nobody sends any more.
            for buffer in list(protocol.stream_buffers.values()):
                await buffer.close()

    async def protocol_send(self, event: Event) -> None:
        # The time an idle connection has would be waited for, with the socket open.
        if not (self._client_has_gone and isinstance(event, Updated)):
            await super().protocol_send(event)

    async def _handle_all(self) -> None:
        """One piece is read ahead: a request that came before its turn would hide that its client has gone."""
        piece = await self._read_piece()
        while piece:
            handling = asyncio.ensure_future(self.protocol.handle(RawData(piece)))
            reading = asyncio.ensure_future(self._read_piece())
            try:
                await asyncio.wait({handling, reading}, return_when=asyncio.FIRST_COMPLETED)
                if reading.done() and not reading.result():
                    await asyncio.wait({handling}, timeout=LAST_WORDS_S)
                    handling.cancel()
                await asyncio.wait({handling})
                if not handling.cancelled():
                    handling.result()
                piece = await reading
            finally:
                handling.cancel()
                reading.cancel()

    async def _read_piece(self) -> bytes:
        """Nothing when there is no more."""
        try:
            return await self.reader.read(MAX_RECV)
        except OSError:
            return b""


class _H11WithReasons:
    """h11, but for the words after a status: `200 OK`.

    HTTP lets them be absent, but hyper, on which the Python client `ksql` stands, cannot read an answer without.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(h11, name)

    def Response(self, *, status_code: int, headers: Any) -> h11.Response:  # noqa: N802 - h11's own name
        return h11.Response(status_code=status_code, headers=headers, reason=HTTPStatus(status_code).phrase.encode())
