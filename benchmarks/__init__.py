"""Penstock beside Apache Kafka on this machine: the same loads on both, one table of ratios.

`make bench` runs everything; `python -m benchmarks --help` shows how to run a part. Loads never decode records and are
bounded in count and time. Numbers of one run may be compared with each other, never with another day's.
"""
