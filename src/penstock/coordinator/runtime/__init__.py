"""The generic part of a coordinator: shards that are led here, loaded, written to, committed, rolled back, unloaded.

Start at `runtime.py`. A shard (`shard.py`) is plain synchronous Python on `timeline.py`; the log is a port (`log.py`).
"""
