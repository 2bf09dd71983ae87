"""What requests do to a transactional id, one module per kind of request.

An operation is a plain function of a shard and the request: it looks at the newest state and returns records and an
answer. It raises only `ProducerIdNeededError`, before anything has happened.
"""
