"""Apache Spark runs the plans: the only package that imports pyspark.

`session` starts Spark, `source` reads and writes topics as a data source, `operators` turn a plan into a DataFrame,
`runner` keeps the queries going.
"""
