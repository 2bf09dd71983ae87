"""Consumer groups: the classic group protocol and the offsets that groups commit.

Start at `shard.py` (the state machine of one partition of `__consumer_offsets`) and `coordinator.py` (what handlers
call). `classic_group.py` is one group; `joining.py`, `syncing.py`, `membership.py` and `rebalance.py` are what its
members do to it; `offset_store.py`, `committing.py`, `fetching.py` and `expiry.py` are about offsets. Nothing but
`coordinator.py` may wait, and nothing here may know sockets, brokers or the replica manager.
"""
