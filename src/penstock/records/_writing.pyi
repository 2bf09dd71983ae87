"""The compiled module has the names of the pure one."""

from penstock.records.pure_writing import BatchWriter as BatchWriter
from penstock.records.pure_writing import encode_columns as encode_columns
