"""Where a consumer keeps its offsets: Kafka, a SQL database, ZooKeeper, or what the user makes.

An offset store is any object with `load(group, partitions)` and `save(group, offsets)`, plain or coroutine functions.
Given to a consumer as `offset_store=`, it says where to begin when partitions are assigned, and commits go there.

The point of a database is that results and offsets can be written in one transaction of the user's own: call
`store.save(group, offsets_after(records), connection=connection)` and commit the connection; then each record counts
exactly once, whatever fails.
"""

from __future__ import annotations

from penstock.client.consumer.offset_stores.base import OffsetStore, StoreCaller, copy_offsets, offsets_after
from penstock.client.consumer.offset_stores.dbapi import DbApiOffsetStore
from penstock.client.consumer.offset_stores.kafka import KafkaOffsetStore
from penstock.client.consumer.offset_stores.zookeeper import ZooKeeperOffsetStore

__all__ = [
    "DbApiOffsetStore",
    "KafkaOffsetStore",
    "OffsetStore",
    "StoreCaller",
    "ZooKeeperOffsetStore",
    "copy_offsets",
    "offsets_after",
]
