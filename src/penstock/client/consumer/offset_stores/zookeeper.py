"""Offsets in ZooKeeper, where Kafka's first consumers kept them: /consumers/<group>/offsets/<topic>/<partition>.

The content of a node is the offset as text, as those consumers and their tools wrote it, so a group of old can be read
and moved. Neither metadata nor leader epochs have a place there.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.base.types import TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import ClientError

_TIMEOUT_S: Final = 10.0


class ZooKeeperOffsetStore:
    """`client` is a started kazoo client, or the hosts as text (`"zk1:2181,zk2:2181/chroot"`): then the store connects
    at its first use and `close` ends the session. Needs kazoo (`penstock[zookeeper]`)."""

    may_use_threads: Final = True
    """Its calls wait for the network; a kazoo client may be used by any thread."""

    def __init__(self, client: Any, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._hosts = client if isinstance(client, str) else None
        self._client: Any = None if isinstance(client, str) else client
        self._timeout_s = timeout_s
        self._lock = threading.Lock()

    def load(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets of these partitions, as far as there are any."""
        client, no_node = self._connected(), _kazoo().exceptions.NoNodeError
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        asked = [(each, client.get_async(path_of(group, each))) for each in partitions]
        for partition, answer in asked:
            try:
                data, _ = answer.get(timeout=self._timeout_s)
            except no_node:
                continue
            found[TopicPartition(*partition)] = OffsetAndMetadata(_offset(data, path_of(group, partition)))
        return found

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Write the offsets to their nodes."""
        client, no_node = self._connected(), _kazoo().exceptions.NoNodeError
        asked = [
            (each, offset, client.set_async(path_of(group, each), b"%d" % offset.offset))
            for each, offset in offsets.items()
        ]
        for partition, offset, answer in asked:
            try:
                answer.get(timeout=self._timeout_s)
            except no_node:
                self._create(path_of(group, partition), b"%d" % offset.offset)

    def close(self) -> None:
        """End the session, if it is the store's own."""
        with self._lock:
            if self._hosts is not None and self._client is not None:
                self._client.stop()
                self._client.close()
                self._client = None

    def __enter__(self) -> ZooKeeperOffsetStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _create(self, path: str, data: bytes) -> None:
        try:
            self._client.create(path, data, makepath=True)
        except _kazoo().exceptions.NodeExistsError:
            self._client.set(path, data)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                client = _kazoo().client.KazooClient(hosts=self._hosts, timeout=self._timeout_s)
                try:
                    client.start(timeout=self._timeout_s)
                except _kazoo().handlers.threading.KazooTimeoutError:
                    client.close()
                    raise ClientError(
                        f"ZooKeeper at {self._hosts} did not answer within {self._timeout_s:.0f} s: check the address"
                    ) from None
                self._client = client
            return self._client


def path_of(group: str, partition: TopicPartition) -> str:
    return f"/consumers/{group}/offsets/{partition[0]}/{partition[1]}"


def _offset(data: bytes, path: str) -> int:
    try:
        return int(data)
    except ValueError:
        raise ClientError(f"ZooKeeper's {path} holds {data!r}, which is no offset: repair or delete it") from None


def _kazoo() -> Any:
    """The package with the modules that are used here; imported late, because it is an extra."""
    try:
        for name in ("kazoo.client", "kazoo.exceptions", "kazoo.handlers.threading"):
            importlib.import_module(name)
        return importlib.import_module("kazoo")
    except ImportError:
        raise ClientError("offsets in ZooKeeper need kazoo: install penstock[zookeeper]") from None
