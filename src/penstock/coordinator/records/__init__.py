"""The records of the coordinators' topics, byte for byte as Apache Kafka writes them.

`group_records.py`: `__consumer_offsets` (offsets and classic groups). `transaction_records.py`: `__transaction_state`.
Each record is a key and a value that begin with a 16-bit number: the kind of record for the key, the version of its
schema for the value. Every older version is read; what Kafka 4.3 writes is written.
"""
