"""What building needs from outside, what it gives, and the facts of the plan that every operator may ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.spark.worker_log import WorkerLog

OutputMode = Literal["append", "update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """`store_path` gives the file of a table's store, or the URL (`http...`) that answers look-ups for it.

    `spark` is a session of the query's own: Python functions are registered in it by name. `log` hears of
    those that fail.
    """

    spark: SparkSession
    functions: FunctionRegistry
    source_frame: Callable[[SourceNode], DataFrame]
    store_path: Callable[[SourceNode], str]
    log: WorkerLog
    shuffle_partitions: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltQuery:
    """`tables` are looked up by the query: they must have caught up before a batch runs.

    The frame has the columns of the plan's schema, ROWTIME, WINDOWSTART and WINDOWEND when windowed, and `__DELETED`
    where records may have no value: for a table, and for a stream that copies such records.
    """

    frame: DataFrame
    output_mode: OutputMode
    tables: tuple[SourceNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query while it is built."""

    context: BuildContext
    output_mode: OutputMode
    watermark_delay_ms: int
    """How late rows may come. Spark has one watermark per query, so it is the longest any part of the plan asks for."""
    used_columns: frozenset[str]
    """Every column that any expression of the plan names: what need not be carried is none of these."""
