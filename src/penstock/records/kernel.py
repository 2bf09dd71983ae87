"""The record kernel in use: the compiled one where it was built, the pure one otherwise.

Both have the same functions, results and errors (see `pure_kernel`); only the speed differs, by a factor of 10 to 100.
"""

from __future__ import annotations

try:
    from penstock.records._kernel import (
        COMPILED,
        decode_records,
        encode_records,
        find_timestamp,
        list_rejected,
        walk_records,
    )
except ImportError:
    from penstock.records.pure_kernel import (
        COMPILED,
        decode_records,
        encode_records,
        find_timestamp,
        list_rejected,
        walk_records,
    )

__all__ = ["COMPILED", "decode_records", "encode_records", "find_timestamp", "list_rejected", "walk_records"]
