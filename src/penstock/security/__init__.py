"""Who one is, who may do what, and how much.

`sasl` and `tls` prove identities: mechanisms as plain state machines, contexts made of Kafka's settings.
`authorizer` and `quotas` are ports, asked once for every request, with the implementation that allows everything;
rules and limits come in beside them. Knows requests by their API and resources by their name, nothing of sockets.
"""
