"""From a plan to a Spark frame.

Each node of a plan has one function here, from the rows below it to its own rows (`rows.Rows`); `build` walks the plan
and puts them together. What Spark does natively is native: transformWithState is used only where Spark has nothing
(sessions that show their changes, taking back what a table gave, outer joins that do not wait).

Nothing here knows of topics, formats or sinks: frames of sources and the place of looked-up tables arrive in the
`BuildContext`.
"""

from penstock.sql.spark.operators.build import build
from penstock.sql.spark.operators.context import BuildContext, BuiltQuery

__all__ = ["BuildContext", "BuiltQuery", "build"]
