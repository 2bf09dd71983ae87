"""Expressions: their form (`nodes`), types (`typing`), value in Python (`evaluation`) and text for Spark (`spark_sql`).

`nodes` knows nothing of the others. Both ways of computing a value follow one rule book, the function table in
`penstock.sql.functions`, and one test suite runs the same cases through both.
"""
