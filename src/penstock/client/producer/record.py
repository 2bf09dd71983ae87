"""A record on its way to a producer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

HeaderValue: TypeAlias = bytes | str | None
HeadersInput: TypeAlias = Mapping[str, HeaderValue] | Iterable[tuple[str, HeaderValue]]
"""What a user may give as headers; text becomes UTF-8."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """What `send` takes as one object, and what interceptors see before anything is serialized.

    `dataclasses.replace(record, value=...)` makes a changed copy.
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    """None leaves the choice to the partitioner."""
    timestamp_ms: int | None = None
    """Milliseconds since the epoch; None takes the present time."""
    headers: HeadersInput | None = None


def as_record(
    topic: str | ProducerRecord,
    value: Any,
    key: Any,
    partition: int | None,
    timestamp_ms: int | None,
    headers: HeadersInput | None,
) -> ProducerRecord:
    if isinstance(topic, ProducerRecord):
        return topic
    return ProducerRecord(
        topic=topic, value=value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
    )


TIMESTAMP_MAX: Final = (1 << 63) - 1


def check_timestamp(timestamp_ms: object) -> None:
    """TypeError or ValueError unless a record can have this timestamp."""
    if not isinstance(timestamp_ms, int):
        raise TypeError(
            f"timestamp_ms must be a whole number of milliseconds since the epoch, not {timestamp_ms!r}: of a datetime"
            " take int(when.timestamp() * 1000)"
        )
    if not 0 <= timestamp_ms <= TIMESTAMP_MAX:
        raise ValueError(f"timestamp_ms must be milliseconds from 0 to {TIMESTAMP_MAX}, not {timestamp_ms}")


def check_partition(partition: object) -> None:
    """TypeError or ValueError unless this can be a partition's number, or None."""
    if partition is None:
        return
    if not isinstance(partition, int):
        raise TypeError(f"partition must be a number or None, not {partition!r}")
    if partition < 0:
        raise ValueError(f"partition must be a number from 0 on, not {partition}")


def check_callback(on_delivery: object) -> None:
    """TypeError unless this can be called at the end of a record."""
    if not callable(on_delivery):
        raise TypeError(f"on_delivery must be a function of (metadata, error), not {on_delivery!r}")


def read_headers(headers: HeadersInput | None) -> Headers:
    """Headers as the kernel takes them. TypeError for anything else."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    try:
        named = [(name, value) for name, value in pairs]
    except (TypeError, ValueError) as error:
        raise TypeError(f"headers must be a mapping, or pairs of a name and a value, not {headers!r}") from error
    return tuple([_read_header(name, value) for name, value in named])


def _read_header(name: object, value: object) -> tuple[str, bytes | None]:
    if not isinstance(name, str):
        raise TypeError(f"the name of a header must be text, not {name!r}")
    if value is None or isinstance(value, bytes):
        return name, value
    if isinstance(value, str):
        return name, value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return name, bytes(value)
    raise TypeError(f"the value of header {name!r} must be bytes, text or None, not {type(value).__name__}")
