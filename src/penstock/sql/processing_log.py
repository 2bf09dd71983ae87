"""The processing log: records that could not be read, computed or written, as a stream of its own.

A bad record never stops a query. It is told here in ksqlDB's shape, at least once: a batch that is repeated tells its
bad records again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.sql.schema import ColumnSchema, Schema
from penstock.sql.types import BIGINT, INTEGER, STRING, Array, Field, Struct

STREAM_NAME = "KSQL_PROCESSING_LOG"

_ERROR_FIELDS = (
    Field("TARGET", STRING),
    Field("ERRORMESSAGE", STRING),
    Field("RECORDB64", STRING),
    Field("CAUSE", Array(STRING)),
    Field("TOPIC", STRING),
    Field("PARTITION", INTEGER),
    Field("OFFSET", BIGINT),
)
_MESSAGE = Struct(
    (
        Field("TYPE", INTEGER),
        Field("DESERIALIZATIONERROR", Struct(_ERROR_FIELDS)),
        Field("RECORDPROCESSINGERROR", Struct((Field("ERRORMESSAGE", STRING), Field("RECORD", STRING)))),
        Field("PRODUCTIONERROR", Struct((Field("ERRORMESSAGE", STRING),))),
        Field("SERIALIZATIONERROR", Struct(_ERROR_FIELDS[:4])),
    )
)
SCHEMA = Schema(
    value=(
        ColumnSchema("LOGGER", STRING),
        ColumnSchema("LEVEL", STRING),
        ColumnSchema("TIME", BIGINT),
        ColumnSchema("MESSAGE", _MESSAGE),
    )
)


def topic_name(service_id: str) -> str:
    return f"{service_id}ksql_processing_log"


def processing_error(*, logger: str, time_ms: int, reason: str, record: str | None) -> bytes:
    """A row on which a computation failed."""
    return entry_of(logger, time_ms, 1, "recordProcessingError", {"errorMessage": reason, "record": record})


def production_error(*, logger: str, time_ms: int, reason: str) -> bytes:
    """A result the cluster refused."""
    return entry_of(logger, time_ms, 2, "productionError", {"errorMessage": reason})


def entry_of(logger: str, time_ms: int, kind: int, name: str, error: dict[str, Any]) -> bytes:
    message = {"type": kind, name: error}
    return msgspec.json.encode({"level": "ERROR", "logger": logger, "time": time_ms, "message": message})
