"""Streaming SQL beside Kafka Streams on this machine: the same inputs, the same results, from the same broker.

`make bench-sql` runs everything; `python -m benchmarks.sql --help` shows how to run a part. Ours is a real
`penstock sql-server` over its REST interface, theirs the small Java program in `java/`, both reading from one real
broker. What it costs is the CPU time of the whole tree of processes (server, Java, Spark's workers; Streams' Java), not
of the broker. Results are read back and checked. Numbers of one run may be compared with each other, never with
another day's.
"""
