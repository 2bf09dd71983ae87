"""Penstock: a Kafka-compatible streaming platform for Python."""

__version__ = "0.1.0"
