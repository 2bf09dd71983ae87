"""The Python clients beside one another on this machine: the same loads by each, on Penstock and on Apache Kafka.

`make bench-clients` runs everything; `python -m benchmarks.clients --help` shows how to run a part. Every measurement
is a process of its own, so that CPU time and memory are one client's. Every count is checked: of produced records in
the broker's log, of consumed ones by their offsets. Numbers of one run may be compared with each other, never with
another day's.
"""
