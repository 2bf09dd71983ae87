"""Records and columns for Hypothesis."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from penstock.records.columns import BinaryColumn, HeaderColumn, LongColumn
from penstock.records.record import Record

per_kernel = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

int64s = st.integers(-(2**63), 2**63 - 1)
timestamps = st.one_of(st.integers(-2, 2**41), int64s)
blobs = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=60, max_size=300))
header_lists = st.lists(st.tuples(st.text(max_size=10), st.one_of(st.none(), st.binary(max_size=100))), max_size=4)
records = st.builds(Record, timestamps, blobs, blobs, header_lists.map(tuple))
record_lists = st.lists(records, min_size=1, max_size=20)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
WIDE_HEADERS = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))


def binary_column(array: Any) -> BinaryColumn:
    validity, offsets, data = array.buffers()
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    return BinaryColumn(
        length=len(array), offset=array.offset, offsets=offsets, data=data, validity=validity, wide=wide
    )


def long_column(array: Any) -> LongColumn:
    validity, data = array.buffers()
    return LongColumn(length=len(array), offset=array.offset, data=data, validity=validity)


def header_column(array: Any) -> HeaderColumn:
    validity, offsets = array.buffers()[:2]
    return HeaderColumn(
        length=len(array),
        offset=array.offset,
        offsets=offsets,
        validity=validity,
        keys=binary_column(array.values.field(0)),
        values=binary_column(array.values.field(1)),
        wide=pa.types.is_large_list(array.type),
    )


def header_dicts(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, object]]:
    return [{"key": key, "value": value} for key, value in headers]
