"""The checkpoint of a query: where it lies, and what Spark wrote into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pyspark.sql import SparkSession

_HEADER_LINES = 2
"""Of an offsets file: the version, and the batch's metadata; then one line per source."""


def checkpoint_uri(folder_uri: str, query_id: str, checkpoint_id: str) -> str:
    """Below the folder of all checkpoints."""
    return f"{folder_uri.rstrip('/')}/{quote(query_id, safe='')}/{checkpoint_id}"


class Checkpoint:
    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self.uri = uri

    def offsets(self, batch_id: int) -> tuple[str, ...]:
        """Where each source of the batch ends, as its source wrote it. Spark writes this before it runs a batch."""
        text = self._read(f"offsets/{batch_id}")
        return tuple(text.rstrip("\n").split("\n")[_HEADER_LINES:])

    def create(self) -> None:
        """The folder, with the permissions that Spark's settings give it."""
        path = self._path("")
        path.getFileSystem(self._hadoop_settings).mkdirs(path)

    def exists(self) -> bool:
        path = self._path("")
        there: bool = path.getFileSystem(self._hadoop_settings).exists(path)
        return there

    def delete(self) -> None:
        path = self._path("")
        path.getFileSystem(self._hadoop_settings).delete(path, True)

    def _read(self, name: str) -> str:
        local = local_path(self.uri)
        if local is not None:
            return (local / name).read_text()
        path = self._path(name)
        stream = path.getFileSystem(self._hadoop_settings).open(path)
        try:
            jvm: Any = self._spark._jvm
            text: str = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            return text
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.hadoop.fs.Path(f"{self.uri}/{name}".rstrip("/"))

    @property
    def _hadoop_settings(self) -> Any:
        context: Any = self._spark.sparkContext
        return context._jsc.hadoopConfiguration()


def local_path(uri: str) -> Path | None:
    """The folder a URI names on this machine, or None when it lies elsewhere."""
    parts = urlsplit(uri)
    return Path(parts.path) if parts.scheme in ("", "file") else None
