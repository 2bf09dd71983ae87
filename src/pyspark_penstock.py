"""Through this module Spark finds `format("penstock")` by itself: it looks for `pyspark_*` with a `DefaultSource`."""

from penstock.sql.spark.source.datasource import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
