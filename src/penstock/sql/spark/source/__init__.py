"""The Spark data source `penstock`: topics of Penstock or any Kafka, read and written with our own clients, no jar.

`datasource` is what Spark sees. Reading: `options` says what was asked, `planning` (one process per query) decides
which offsets make a batch, `admission` how many, `ranges` which task reads what, `fetching` fetches it as Arrow. In
typed mode (`typed`) the columns are those of a declared source instead of bytes. `frame` gives the engine its frames.
"""
