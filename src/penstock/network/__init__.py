"""Outgoing connections: requests to brokers, from brokers and from clients alike.

One question to broker 2, from anywhere that has the pool::

    from penstock.network.errors import NetworkError
    from penstock.protocol.apis import ApiKey

    try:
        request = WriteTxnMarkersRequest(markers=[...])
        response = await pool.send(2, ApiKey.WRITE_TXN_MARKERS, request, timeout_ms=30_000)
    except NetworkError as error:   # error.retriable, error.code (a Kafka code), str(error) is a sentence
        ...

`send` returns a future at once, so several questions may be under way; it never raises by itself and never hangs: the
future ends with the decoded response or with a `NetworkError` within the time-out. The version is the highest that both
sides know; `at_least=4` and `at_most=3` narrow the choice (`UnsupportedVersion` if nothing is left). Where the message
depends on the version, give a function of the version instead of the message. Requests to one broker are answered in
the order in which they were sent.

The composition root makes the pool, and closes it::

    pool = ChannelPool(
        endpoints=lambda node_id: Address("host", 9092),     # or None for a node that is not known (now)
        ports=NetworkPorts(network=world.network, clock=world.clock, tasks=world.tasks, rng=random.Random()),
        settings=NetworkSettings(client_id="broker-1"),
        security=connection_security(SecuritySettings.of(values), ports),     # None is PLAINTEXT
        observer=None,                                                        # or a `NetworkObserver`, to measure
    )
    ...
    await pool.close()

Entry points, from the top: `pool.ChannelPool` (all brokers), `channel.NodeChannel` (one broker: queue, reconnecting),
`connection.Connection` (one socket: order, time-outs), `handshake` (what happens before the first request: versions,
then the steps of `security`). `framing`, `in_flight`, `versions` and `backoff` are plain synchronous parts.

`security.connection_security` makes a TLS context and the SASL step of Kafka's keys; `session` prolongs sessions that
end, `throttling` obeys a broker that asks for a pause. Whoever is not believed gets `AuthenticationFailed`, which is
not retriable: the same attempt would fail again.

It must not know topics, partitions, groups or what any request means; time, chance, sockets and tasks are ports.
"""
