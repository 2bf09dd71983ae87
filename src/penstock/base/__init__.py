"""Value types, error codes, declared configuration, ports to the world, metrics and logging.

Knows nothing of Kafka beyond its nouns; imports no other package of Penstock.
"""
