"""Membership in a consumer group: join, sync, heartbeats, leave (Kafka's classic protocol).

`machine.Machine` is the core: what happened goes in, what is to be done comes out; no time, no I/O. `wire` encodes
what members tell one another, `leading` is the leader's work, `timing` says when a heartbeat is due, all pure.
`membership.GroupMembership` is the driver that a consumer calls in every poll; `exchange` sends its requests and
`heartbeats` runs in the background.
"""
