"""Commands: what statements change, in the order in which all servers apply it.

`command` is one change as data and its effect on a catalog (pure); `topic` writes commands into a Kafka topic, one
writer at a time, and `replay` reads them; `actions` says what the runner of queries must do when a catalog becomes
another.
"""
