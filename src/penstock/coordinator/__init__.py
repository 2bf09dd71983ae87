"""Coordinators: consumer groups and transactions as state machines over the partitions of internal topics.

`runtime/` hosts one shard per partition that is led here; `group/` and `transaction/` are the shards; `records/` is how
their records look in the log; `placement.py` says which partition a group or transactional id belongs to. Nothing here
knows brokers, sockets or the replica manager: appends and commits go through the port `runtime/log.py`.
"""
