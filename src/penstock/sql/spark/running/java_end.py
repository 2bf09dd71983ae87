"""The end of the Java machine under Spark, as those see it who ask it something at that moment."""

from __future__ import annotations

import time
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped, unused-ignore]
from pyspark.sql import SparkSession

from penstock.sql.spark.driver.session import java_is_alive

_NOTICED_WITHIN_S: Final = 0.5
_LOOK_S: Final = 0.05


def is_java_gone(error: BaseException) -> bool:
    """Whether a call failed because there is nobody to answer. An answer that breaks off in the middle is a Py4JError
    like any other; then it counts whether the machine still runs, which the system tells a moment later.
    """
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return True
    if not isinstance(error, Py4JError) or isinstance(error, Py4JJavaError):
        return False
    deadline = time.monotonic() + _NOTICED_WITHIN_S
    while java_is_alive():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def quieten_accumulators(spark: SparkSession) -> None:
    """PySpark's server of accumulators prints a traceback when Java's end closes its connection; that is told already.

    Nothing here uses accumulators, so whatever goes wrong there is of no use to anybody.
    """
    context: Any = spark.sparkContext
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, client_address: None
