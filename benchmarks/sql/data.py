"""The input records: made by rule, so that what comes out can be counted.

Events have a key out of 20,000, in an order without a pattern; every other one is an error. Time goes on by 10,000
records a second and ends now, however many there are: more records are a longer time, not a denser one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.sql.plan import EVENTS, KEY_COUNT, ORDERS, PAYMENTS, USERS

RECORDS_PER_SECOND: Final = 10_000
PAYMENT_DELAY_MS: Final = 2_000
_CHUNK: Final = 250_000
_STEP: Final = 7_919
"""A prime that is no divisor of the number of keys: stepping by it meets every key before any comes again."""
_LEVELS: Final = ("Basic", "Silver", "Gold", "Platinum")


def rows_of(topic: str, total: int) -> int:
    """How many records a topic gets when a query is to read `total` in all."""
    if topic == USERS:
        return KEY_COUNT
    return total if topic == EVENTS else total // 2


def errors_of(count: int) -> int:
    """How many of so many events are errors."""
    return count // 2


def records(topic: str, total: int, end_ms: int) -> Iterator[pa.Table]:
    """Keys, values and timestamps, some at a time. The last event happens at `end_ms`."""
    count = rows_of(topic, total)
    span_ms = total * 1000 // RECORDS_PER_SECOND
    for start in range(0, count, _CHUNK):
        numbers = numpy.arange(start, min(start + _CHUNK, count), dtype=numpy.int64)
        times = end_ms - span_ms + numbers * span_ms // count
        if topic == USERS:
            times = numpy.full(len(numbers), end_ms - span_ms - 1_000)
        if topic == PAYMENTS:
            times = times + PAYMENT_DELAY_MS
        yield _table(topic, numbers, times)


def event_key(number: int) -> bytes:
    return b"user-%05d" % (number * _STEP % KEY_COUNT)


def event_value(number: int, sent: int, *, is_error: bool) -> bytes:
    """One event, for who sends them one by one."""
    kind = "ERROR" if is_error else "INFO"
    text = f'{{"id":{number},"type":"{kind}","page":"/page/{number % 997}","amount":{number % 1000}.25,"sent":{sent}}}'
    return text.encode()


def _table(topic: str, numbers: numpy.ndarray, times: numpy.ndarray) -> pa.Table:
    keys, values = _WRITERS[topic](numbers, times)
    return pa.table(
        {"key": keys.cast(pa.binary()), "value": values.cast(pa.binary()), "timestamp": pa.array(times, pa.int64())}
    )


def _events(numbers: numpy.ndarray, times: numpy.ndarray) -> tuple[pa.Array, pa.Array]:
    kinds = pc.if_else(pa.array(numbers % 2 == 1), "ERROR", "INFO")
    values = _joined('{"id":', numbers, ',"type":"', kinds, '","page":"/page/', numbers % 997, '","amount":',
                     numbers % 1000, '.25,"sent":', times, "}")  # fmt: skip
    return _joined("user-", _digits(numbers * _STEP % KEY_COUNT)), values


def _users(numbers: numpy.ndarray, _: numpy.ndarray) -> tuple[pa.Array, pa.Array]:
    levels = pa.array(_LEVELS).take(pa.array(numbers % len(_LEVELS)))
    return _joined("user-", _digits(numbers)), _joined('{"name":"Name ', numbers, '","level":"', levels, '"}')


def _orders(numbers: numpy.ndarray, _: numpy.ndarray) -> tuple[pa.Array, pa.Array]:
    return _joined("order-", numbers), _joined('{"amount":', numbers % 1000, ".25}")


def _payments(numbers: numpy.ndarray, _: numpy.ndarray) -> tuple[pa.Array, pa.Array]:
    return _joined("order-", numbers), _joined('{"paid":', numbers % 1000, ".75}")


_WRITERS: Final = {EVENTS: _events, USERS: _users, ORDERS: _orders, PAYMENTS: _payments}


def _digits(numbers: numpy.ndarray) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 5, "0")


def _joined(*parts: str | numpy.ndarray | pa.Array) -> pa.Array:
    texts = [pa.array(part).cast(pa.string()) if isinstance(part, numpy.ndarray) else part for part in parts]
    return pc.binary_join_element_wise(*texts, "")
