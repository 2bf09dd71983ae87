"""A TCP proxy between client and broker that can be slow, cut connections, or go silent as a broken network does.

A connection that has lost bytes is never healed: TCP delivers all bytes or none, so one that is silent stays so until
somebody closes it. New connections pass unless `silence(new=True)`.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass

_CHUNK_BYTES = 64 << 10
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: close() sends RST."""


@dataclass(eq=False)
class _Pair:
    client: socket.socket
    broker: socket.socket
    is_silent: bool = False
    loses_answers: bool = False

    def passes(self, source: socket.socket) -> bool:
        return not (self.is_silent or (self.loses_answers and source is self.broker))

    def cut(self) -> None:
        for each in (self.client, self.broker):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class FaultyProxy:
    """Listens at `port`; the broker's port may be told later, as it advertises the proxy's."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.broker_port = 0
        self.delay_s = 0.0
        """How much later every piece arrives, in both directions."""
        self.accepted = 0
        self._is_silent = False
        self._pairs: list[_Pair] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.cut()

    def silence(self, *, new: bool = False) -> None:
        """What is under way on open connections, and all that follows on them, is lost; nobody is told."""
        with self._lock:
            self._is_silent = new
            for pair in self._pairs:
                pair.is_silent = True

    def lose_answers(self) -> None:
        """Requests on open connections still arrive; nothing comes back, and nobody is told."""
        with self._lock:
            for pair in self._pairs:
                pair.loses_answers = True

    def heal(self) -> None:
        """New connections work again, old ones do not."""
        with self._lock:
            self._is_silent = False
        self.delay_s = 0.0

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                broker = socket.create_connection(("127.0.0.1", self.broker_port), 5)
            except OSError:
                client.close()
                continue
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._begin(_Pair(client, broker))

    def _begin(self, pair: _Pair) -> None:
        """From here on the pair may be cut at any moment; only its own threads touch its sockets."""
        with self._lock:
            pair.is_silent = self._is_silent
            self._pairs.append(pair)
        for source, target in ((pair.client, pair.broker), (pair.broker, pair.client)):
            threading.Thread(target=self._pump, args=(pair, source, target), daemon=True).start()

    def _pump(self, pair: _Pair, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            source.settimeout(None)
            while data := source.recv(_CHUNK_BYTES):
                if self.delay_s:
                    time.sleep(self.delay_s)
                if pair.passes(source):
                    target.sendall(data)
        if not pair.is_silent:
            pair.cut()
