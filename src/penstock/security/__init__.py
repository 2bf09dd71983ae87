"""Who may do what, and how much: authorization and quotas, asked once for every request.

`authorizer` and `quotas` are ports with the implementation that allows everything; mechanisms, rules and limits
come in beside them. Knows requests by their API and resources by their name, nothing of sockets.
"""
