"""Streaming SQL: the language, the catalog, the plans, and the engine that runs them on Apache Spark.

Reading order: `types`, `expressions`, `statements` (the language as data), `parser` (text to statements), `catalog`
(what exists), `plan` (what a query does, as data), `spark` (the one visitor that runs a plan, and the only importer of
pyspark), `stores` (tables for pull queries), `commands` (the log of statements), `engine` (statements in, effects out),
`server` (REST) and `shell` (a REST client).

Everything here is a client of a Kafka cluster: nothing in it knows what is inside a broker.
"""
