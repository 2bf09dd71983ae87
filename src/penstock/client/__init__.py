"""The Kafka clients: producer, consumer and administration.

One asyncio core does the work (`producer.producer.AsyncProducer`, `consumer.consumer.AsyncConsumer`,
`admin.admin.AsyncAdmin`, offered as `penstock.aio.Producer` and so on); the blocking classes of the same names in
`penstock` run that core on a thread of their own. What all of them share is in `core`: connections by node, metadata,
coordinators, retries, the thread. `config` declares every key once, `errors` has the typed errors.

A producer, a consumer and an administrator know `core`, `config` and `errors`, never one another. Nothing here knows a
broker's inside (server, storage, replication, coordinators).
"""
