"""The compiled kernel has the functions of the pure one."""

from penstock.records.pure_kernel import decode_records as decode_records
from penstock.records.pure_kernel import encode_records as encode_records
from penstock.records.pure_kernel import find_timestamp as find_timestamp
from penstock.records.pure_kernel import list_rejected as list_rejected
from penstock.records.pure_kernel import walk_records as walk_records

COMPILED: bool
NO_MIN_TIMESTAMP: int
