"""Keys and values as the user wants them.

Without deserializers records stay as they were decoded, and nothing here is called. One that fails stops at its record:
those before it are given, and the error names topic, partition and offset; a seek gets past it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.client.config.consumer_keys import KEY_DESERIALIZER, VALUE_DESERIALIZER
from penstock.client.config.resolving import Resolving
from penstock.client.consumer.fetching.partition_fetch import Convert
from penstock.client.errors import SerializationError
from penstock.records.record import ConsumerRecord
from penstock.serde.resolving import close_serde, resolve_deserializer

Deserialize = Callable[[str, bytes | None, Any], Any]


class Deserializing:
    def __init__(self, key: object, value: object, resolving: Resolving | None = None) -> None:
        """What cannot deserialize is told to `resolving`, or raised."""
        told = resolving or Resolving()
        self._key: Deserialize | None = told.value(KEY_DESERIALIZER, lambda: resolve_deserializer(key), None)
        self._value: Deserialize | None = told.value(VALUE_DESERIALIZER, lambda: resolve_deserializer(value), None)
        if resolving is None:
            told.check()

    @property
    def convert(self) -> Convert | None:
        """None when there is nothing to do."""
        return None if self._key is None and self._value is None else self._convert

    def close(self) -> None:
        try:
            close_serde(self._key)
        finally:
            close_serde(self._value)

    def _convert(self, records: list[ConsumerRecord]) -> tuple[list[ConsumerRecord], Exception | None]:
        done: list[ConsumerRecord] = []
        key, value = self._key, self._value
        make = tuple.__new__
        for record in records:
            topic, partition, offset, timestamp, kind, raw_key, raw_value, headers, epoch = record
            part = "key"
            try:
                new_key: Any = raw_key if key is None else key(topic, raw_key, headers)
                part = "value"
                new_value: Any = raw_value if value is None else value(topic, raw_value, headers)
            except Exception as error:  # noqa: BLE001 - the user's own function: its error is told with its record
                return done, _failure(record, part, error)
            done.append(
                make(ConsumerRecord, (topic, partition, offset, timestamp, kind, new_key, new_value, headers, epoch))
            )
        return done, None


def _failure(record: ConsumerRecord, part: str, cause: Exception) -> SerializationError:
    error = SerializationError(
        f"The {part} of the record at offset {record.offset} of {record.topic}-{record.partition} cannot be "
        f"deserialized: {cause}. Seek to {record.offset + 1} to get past it."
    )
    error.topic, error.partition, error.offset = record.topic, record.partition, record.offset
    error.__cause__ = cause
    return error
