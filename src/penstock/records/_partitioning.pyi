"""The compiled module has the names of the pure one."""

from penstock.records.pure_partitioning import NO_PARTITION as NO_PARTITION
from penstock.records.pure_partitioning import group_rows as group_rows
from penstock.records.pure_partitioning import murmur2 as murmur2
from penstock.records.pure_partitioning import partition_column as partition_column
from penstock.records.pure_partitioning import partition_for_key as partition_for_key
from penstock.records.pure_partitioning import partition_keys as partition_keys
