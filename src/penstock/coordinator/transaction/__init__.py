"""The transaction coordinator: which producer owns a transactional id, and what its transaction has reached.

`coordinator.py` is the entry point (`TransactionCoordinator`); `shard.py` is the state machine of one partition of
`__transaction_state`; `states.py` and `metadata.py` say what a transaction may do next; `operations/` decides, one
module per kind of request; `markers.py` brings the end of a transaction to the partitions that took part.

It must not know handlers, sockets or the replica manager. Requests to other brokers leave through a port, also when
the other broker is this one.
"""
