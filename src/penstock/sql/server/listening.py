"""HTTP/1.1 and HTTP/2 on one port, without TLS: a client that begins with HTTP/2's preface, or asks for it, gets it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import Framework
from starlette.applications import Starlette

from penstock.sql.errors import SqlError
from penstock.sql.server.connections import LAST_WORDS_S, adjust_hypercorn

log = logging.getLogger(__name__)

DEFAULT_PORT = 8088
KEEP_ALIVE_S = 75


class ListenerError(SqlError):
    """An address that cannot be listened on."""

    code = 50000


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def parse_listeners(text: str) -> tuple[Listener, ...]:
    """`http://HOST:PORT,...`; port 0 is any free one."""
    return tuple(_parse_listener(part.strip()) for part in text.split(",") if part.strip())


def _parse_listener(text: str) -> Listener:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        raise ListenerError(f"{text} is no address: its port is not a number from 0 to 65535.") from None
    if parts.scheme != "http":
        raise ListenerError(
            f"{text} cannot be listened on: only http is served.", hint="Put a proxy before it for TLS."
        )
    if not parts.hostname or parts.path not in ("", "/"):
        raise ListenerError(f"{text} is no address.", hint="Write http://HOST:PORT.")
    return Listener(host=parts.hostname, port=DEFAULT_PORT if port is None else port)


class HttpServer:
    """Binds at once, so that the addresses are known (and refused) before anything else starts."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._sockets = [_bind(listener) for listener in listeners]
        self.listeners = tuple(
            Listener(host=listener.host, port=bound.getsockname()[1])
            for listener, bound in zip(listeners, self._sockets, strict=True)
        )

    def close(self) -> None:
        """Of a server that never served."""
        for bound in self._sockets:
            bound.close()

    async def serve(self, app: Starlette, stop: asyncio.Event) -> None:
        config = Config()
        config.bind = [f"fd://{bound.detach()}" for bound in self._sockets]
        config.keep_alive_timeout = KEEP_ALIVE_S
        # Connections end themselves before.
        config.graceful_timeout = 2 * LAST_WORDS_S
        config.include_server_header = False
        config.errorlog = logging.getLogger("penstock.sql.http")
        config.accesslog = None
        # Said once per listener by whoever starts the server, in its own words.
        config.errorlog.addFilter(lambda record: "Running on" not in record.getMessage())
        adjust_hypercorn()
        await serve(cast("Framework", app), config, shutdown_trigger=stop.wait)


def _bind(listener: Listener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listener.host, listener.port))
        bound.listen()
    except OSError as error:
        bound.close()
        reason = (error.strerror or str(error)).lower()
        raise ListenerError(
            f"{listener.url} cannot be listened on: {reason}.", hint="Choose another --listeners."
        ) from None
    bound.setblocking(False)
    return bound
