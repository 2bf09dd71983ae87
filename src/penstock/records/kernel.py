"""The record kernel in use: the compiled one where it was built, the pure one otherwise.

Both have the same functions, results and errors (see `pure_kernel`, `pure_writing`, `pure_sending`,
`pure_partitioning` and `pure_consuming`); only the speed differs, by a factor of 10 to 100.

Nothing here takes a lock. Functions may be called from any thread; a `BatchWriter` or `ColumnFiller` belongs to one
thread at a time. Big pieces of column work release the interpreter's lock; a writer or filler that is used by another
thread meanwhile raises `RuntimeError`.
"""

from __future__ import annotations

try:
    from penstock.records._consuming import ColumnFiller, decode_consumer_records
    from penstock.records._kernel import (
        COMPILED,
        decode_records,
        encode_records,
        find_timestamp,
        list_rejected,
        walk_records,
    )
    from penstock.records._partitioning import group_rows, murmur2, partition_column, partition_for_key, partition_keys
    from penstock.records._sending import Receipt, ShortWay
    from penstock.records._writing import BatchWriter, encode_columns
except ImportError:
    from penstock.records.pure_consuming import ColumnFiller, decode_consumer_records
    from penstock.records.pure_kernel import (
        COMPILED,
        decode_records,
        encode_records,
        find_timestamp,
        list_rejected,
        walk_records,
    )
    from penstock.records.pure_partitioning import (
        group_rows,
        murmur2,
        partition_column,
        partition_for_key,
        partition_keys,
    )
    from penstock.records.pure_sending import Receipt, ShortWay
    from penstock.records.pure_writing import BatchWriter, encode_columns

__all__ = [
    "COMPILED",
    "BatchWriter",
    "ColumnFiller",
    "Receipt",
    "ShortWay",
    "decode_consumer_records",
    "decode_records",
    "encode_columns",
    "encode_records",
    "find_timestamp",
    "group_rows",
    "list_rejected",
    "murmur2",
    "partition_column",
    "partition_for_key",
    "partition_keys",
    "walk_records",
]
