"""The compiled module has the names of the pure one."""

from penstock.records.pure_consuming import ColumnFiller as ColumnFiller
from penstock.records.pure_consuming import decode_consumer_records as decode_consumer_records
