"""One entry of `log.dirs`: its lock, its identity, its clean-shutdown marker and its checkpoints.

`.lock` keeps a second broker out while this one runs. `meta.properties` says which node of which cluster the data
belongs to, so that a directory mounted in the wrong place is refused instead of served. `.kafka_cleanshutdown` is
written last at a clean stop and taken away first at the next start: whoever finds it may trust indexes and
recovery points without reading the logs.

All methods block; the log manager calls them in workers.
"""

from __future__ import annotations

import json
import logging
import posixpath
import random
import re
from dataclasses import dataclass
from uuid import UUID

from penstock.base.ports import FileLock, Files
from penstock.base.types import new_uuid, uuid_from_text, uuid_to_text
from penstock.storage.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS, OffsetCheckpoint

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
_ESCAPE = re.compile(r"\\(.)")


class LogDirectoryError(Exception):
    """A log directory must not be used by this broker. The text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Version 1 (KRaft) names the node `node.id`, version 0 (ZooKeeper) `broker.id`; version 0 may lack both ids."""

    version: int = 1
    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None

    def encode(self) -> bytes:
        values = {
            "version": str(self.version),
            "cluster.id": self.cluster_id,
            "node.id" if self.version else "broker.id": None if self.node_id is None else str(self.node_id),
            "directory.id": None if self.directory_id is None else uuid_to_text(self.directory_id),
        }
        return "".join(f"{key}={value}\n" for key, value in values.items() if value is not None).encode()


def decode_meta_properties(data: bytes, path: str) -> MetaProperties:
    properties = _read_properties(data.decode("utf-8", "replace"))
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        raise LogDirectoryError(f"{path} has version {version!r}; only 0 and 1 are known")
    directory_id = properties.get("directory.id")
    try:
        node_id = properties.get("node.id" if version == "1" else "broker.id")
        meta = MetaProperties(
            version=int(version),
            cluster_id=properties.get("cluster.id"),
            node_id=None if node_id is None else int(node_id),
            directory_id=None if directory_id is None else uuid_from_text(directory_id),
        )
    except ValueError as error:
        raise LogDirectoryError(f"{path} cannot be read: {error}") from error
    if meta.version == 1 and (meta.cluster_id is None or meta.node_id is None):
        raise LogDirectoryError(f"{path} lacks cluster.id or node.id")
    return meta


def _read_properties(text: str) -> dict[str, str]:
    properties = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            properties[key.strip()] = _ESCAPE.sub(r"\1", value.strip())
    return properties


class LogDirectory:
    """The state of one log directory. `is_offline` once the disk under it has failed."""

    __slots__ = (
        "_files",
        "_lock",
        "directory_id",
        "high_watermarks",
        "is_loaded",
        "is_offline",
        "log_start_offsets",
        "path",
        "recovery_points",
        "was_clean",
    )

    def __init__(self, path: str, files: Files) -> None:
        self.path = posixpath.normpath(path)
        self._files = files
        self._lock: FileLock | None = None
        self.directory_id: UUID | None = None
        self.is_offline = False
        self.was_clean = False
        # Every log in it was opened, so that a clean stop may say so.
        self.is_loaded = False
        self.recovery_points = OffsetCheckpoint(self.path, RECOVERY_POINTS, files)
        self.log_start_offsets = OffsetCheckpoint(self.path, LOG_START_OFFSETS, files)
        self.high_watermarks = OffsetCheckpoint(self.path, HIGH_WATERMARKS, files)

    def __str__(self) -> str:
        return self.path

    # -- The lock --------------------------------------------------------------------------------------------------

    def create_and_lock(self) -> None:
        self._files.make_directory(self.path)
        path = f"{self.path}/{LOCK_FILE}"
        try:
            self._lock = self._files.lock(path)
        except BlockingIOError as error:
            raise LogDirectoryError(
                f"log directory {self.path} is in use by another broker{self._holder(path)}; stop that one or choose"
                " another directory with log.dirs"
            ) from error

    def _holder(self, path: str) -> str:
        # The holder writes its process id into the lock file; Apache Kafka leaves it empty.
        content = self._files.read(path).strip()
        return f" (process {int(content)})" if content.isdigit() else ""

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- Identity --------------------------------------------------------------------------------------------------

    def read_meta(self) -> MetaProperties | None:
        path = f"{self.path}/{META_PROPERTIES}"
        try:
            return decode_meta_properties(self._files.read(path), path)
        except FileNotFoundError:
            return None

    def write_meta(self, meta: MetaProperties) -> None:
        self._files.write_atomically(f"{self.path}/{META_PROPERTIES}", meta.encode())

    def check_meta(self, meta: MetaProperties, *, cluster_id: str, node_id: int) -> None:
        path = f"{self.path}/{META_PROPERTIES}"
        if meta.node_id is not None and meta.node_id != node_id:
            raise LogDirectoryError(
                f"{path} belongs to node {meta.node_id}, but this broker is node {node_id}; set node.id to"
                f" {meta.node_id} or give this broker a directory of its own"
            )
        if meta.cluster_id is not None and meta.cluster_id != cluster_id:
            raise LogDirectoryError(
                f"{path} belongs to cluster {meta.cluster_id}, but this broker is in cluster {cluster_id}; give it a"
                " directory of its own"
            )

    def complete_meta(self, meta: MetaProperties | None, *, cluster_id: str, node_id: int, rng: random.Random) -> None:
        """Initialise an empty directory, or add the directory id that an older Kafka did not write."""
        version = 1 if meta is None else meta.version
        directory_id = None if meta is None else meta.directory_id
        self.directory_id = directory_id or new_uuid(rng)
        completed = MetaProperties(
            version=version, cluster_id=cluster_id, node_id=node_id, directory_id=self.directory_id
        )
        if completed != meta:
            self.write_meta(completed)

    # -- Clean shutdown --------------------------------------------------------------------------------------------

    def take_clean_shutdown_marker(self) -> bool:
        """Whether the last stop was clean. The marker goes at once: a crash while loading is an unclean stop."""
        try:
            self._files.remove(f"{self.path}/{CLEAN_SHUTDOWN_FILE}")
        except FileNotFoundError:
            self.was_clean = False
        else:
            self._files.sync_directory(self.path)
            self.was_clean = True
        return self.was_clean

    def write_clean_shutdown_marker(self, broker_epoch: int) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._files.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN_FILE}", content.encode())


def read_broker_epoch(path: str, files: Files) -> int | None:
    """The broker epoch in a clean-shutdown marker (KIP-966); None without a marker that can be read."""
    try:
        epoch = json.loads(files.read(f"{path}/{CLEAN_SHUTDOWN_FILE}"))["brokerEpoch"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return epoch if isinstance(epoch, int) else None
