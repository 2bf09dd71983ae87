"""Rows of columns as Python objects, with every bound checked: what the pure kernel uses to read columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.records.columns import ArrowBuffer, BinaryColumn, HeaderColumn, LongColumn
from penstock.records.record import Header


class BadColumn(ValueError):  # noqa: N818 - named for what it is held against
    """The buffers of a column do not have the rows that it promises."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the buffers of a column are damaged: {what}")


def read_binary(column: BinaryColumn) -> Callable[[int], bytes | None]:
    """A function from a row of the column to its bytes."""
    is_valid = read_validity(column)
    bounds = _read_bounds(column)
    data = _view(column.data)

    def row(index: int) -> bytes | None:
        if not is_valid(index):
            return None
        start, stop = bounds(index, len(data))
        return bytes(data[start:stop])

    return row


def read_longs(column: LongColumn) -> Callable[[int], int | None]:
    is_valid = read_validity(column)
    data = _numbers(column.data, "q", column.offset + column.length)
    offset = column.offset
    return lambda index: data[offset + index] if is_valid(index) else None


def read_headers(column: HeaderColumn) -> Callable[[int], tuple[Header, ...]]:
    is_valid = read_validity(column)
    bounds = _read_bounds(column)
    keys = read_binary(column.keys)
    values = read_binary(column.values)
    count = min(column.keys.length, column.values.length)

    def header(index: int) -> Header:
        key = keys(index)
        if key is None:
            raise BadColumn("a header has no key")
        try:
            return key.decode(), values(index)
        except UnicodeDecodeError:
            raise BadColumn("the key of a header is not UTF-8") from None

    def row(index: int) -> tuple[Header, ...]:
        if not is_valid(index):
            return ()
        start, stop = bounds(index, count)
        return tuple([header(child) for child in range(start, stop)])

    return row


def read_validity(column: BinaryColumn | LongColumn | HeaderColumn) -> Callable[[int], bool]:
    if column.length < 0 or column.offset < 0:
        raise BadColumn("a negative length or offset")
    if column.validity is None:
        return lambda _: True
    bits = _view(column.validity)
    offset = column.offset
    if len(bits) * 8 < offset + column.length:
        raise BadColumn("its validity is shorter than the column")
    return lambda index: bool(bits[offset + index >> 3] >> (offset + index & 7) & 1)


def _read_bounds(column: BinaryColumn | HeaderColumn) -> Callable[[int, int], tuple[int, int]]:
    offset = column.offset
    # Arrow lets a column without rows go without offsets.
    numbers = _numbers(column.offsets, "q" if column.wide else "i", offset + column.length + 1) if column.length else ()

    def bounds(index: int, size: int) -> tuple[int, int]:
        start, stop = numbers[offset + index], numbers[offset + index + 1]
        if not 0 <= start <= stop <= size:
            raise BadColumn(f"row {index} lies outside of the data")
        return start, stop

    return bounds


def _numbers(buffer: ArrowBuffer, letter: str, count: int) -> Sequence[int]:
    view = _view(buffer)
    width = 8 if letter == "q" else 4
    if len(view) < width * count:
        raise BadColumn("it has fewer numbers than rows")
    return view[: width * count].cast(letter)  # type: ignore[call-overload, no-any-return]


def _view(buffer: ArrowBuffer | None) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")
