"""The consumer: reads records of topics, alone or as a member of a group.

Entry points: `consumer.AsyncConsumer` (all the logic, on one event loop), `blocking.Consumer` (the same for threads).
`subscription` and `positions` are the pure state both fetching and the group work on; `polling` is what a poll does;
`fetching` brings record batches here and opens them; `group`, `assignors` and `commits` are membership; `arrow` makes
tables of batches.

Must not know the producer or the admin client.
"""
