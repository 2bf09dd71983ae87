"""Queries that run: started, supervised, their batches committed, stopped.

`runner` keeps the table of them, `lanes` does what each needs in turn, `persistent` is one that writes a topic, `sink`
commits its batches, `transient` is one that somebody watches.
"""
