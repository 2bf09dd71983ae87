"""The producer: records in, batches out.

Reading order: `partitioner` (which partition), `batch` and `delivery` (one batch, and what a caller holds of it),
`memory` and `accumulator` (what waits), `idempotence` (sequences), `preparing` (the caller's side: from a user's record
to an appended one), `requests` and `outcomes` (Produce and what its answers mean), `sender` (the I/O side), `producer`
(the asyncio face) and `blocking` (the other one). `bulk` and `arrow` are `send_many`.

Threads: callers append under the lock of one partition's queue; one I/O thread, the event loop's, does everything else.
`accumulator` says who may touch what.

It must not know consumers or groups; transactions are a guest (`transactions`) that the sender asks.
"""
