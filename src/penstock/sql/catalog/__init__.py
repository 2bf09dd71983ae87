"""The catalog: streams, tables, types and persistent queries, as one immutable value.

Entry point: `catalog.Catalog`. It knows nothing of topics' contents, of Spark or of who asks.
"""
