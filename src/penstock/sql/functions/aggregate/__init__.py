"""Aggregate functions: a native Spark aggregate each, and the same in Python for sessions."""
