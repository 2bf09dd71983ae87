"""Kafka's own command-line tools by their names and flags, one module per tool.

`parsing` reads Kafka's way of writing options and is pure; `tool` runs a tool and turns failures into one sentence and
an exit code; `connecting` makes the clients from the common options, and finds brokers in ZooKeeper for the older
command lines. What the tools print is what Kafka's print, so that scripts which read it go on working.

Each module has `main`, the entry point of the command with and without `.sh`, and runs as
`python -m penstock.cli.kafka.<module>`. They are clients: they know nothing of what is inside a broker, except
`dump_log`, which reads files.
"""
