"""Apache Spark runs the plans: the only package that imports pyspark.

`driver` starts Spark, `source` reads and writes topics as a data source, `operators` turn a plan into a DataFrame,
`building` puts these together, `running` keeps the queries going.
"""
