"""SASL mechanisms, each a plain state machine: bytes in, bytes out, no socket and no clock.

`mechanism.ClientMechanism` is what every client side looks like; `plain`, `scram` and `oauthbearer` are the mechanisms.
What both sides of a mechanism need (the messages and the arithmetic of SCRAM in `scram_messages`, the token message in
`oauthbearer`) knows nothing of sides, so a server side sits beside its client and shares it.

Chance (nonces) and time arrive as arguments. Whoever moves the bytes is `penstock.network.sasl`.
"""
