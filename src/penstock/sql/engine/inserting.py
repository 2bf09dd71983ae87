"""INSERT INTO ... VALUES, and rows that clients send: one record each, written at once."""

from __future__ import annotations

import decimal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock import Delivery, KafkaError, Producer
from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.engine.json_input import column_value
from penstock.sql.engine.reading import NoTopicError, remedy, sentence
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import EngineError, SemanticError, SqlError
from penstock.sql.expressions.coercion import common_type, is_number
from penstock.sql.expressions.evaluation import compile_as
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.expressions.walk import columns_of
from penstock.sql.formats.codec import BadValueError
from penstock.sql.formats.encoding import RowEncoder
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.plan.instants import parse_instant_ms
from penstock.sql.plan.nodes import Sink
from penstock.sql.plan.scope import similar_source
from penstock.sql.schema import RESERVED_NAMES, ROWTIME
from penstock.sql.statements import InsertValues
from penstock.sql.types import BIGINT, BOOLEAN, BYTES, DATE, NULL, STRING, TIME, TIMESTAMP, Decimal, SqlType

_PATIENCE: Final = {"delivery.timeout.ms": 30_000, "request.timeout.ms": 10_000, "max.block.ms": 10_000}
"""Whoever waits is told by the producer that it gave up: a record that was refused is not written later."""
_LOOK_UP_MS: Final = 10_000
_TEXTS: Final = (TIME, DATE, TIMESTAMP, BYTES)
"""Types whose values are written as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class Inserter:
    """Makes records and writes them. The producer is made with the first."""

    def __init__(self, kafka: KafkaAccess, functions: FunctionRegistry) -> None:
        self._kafka = kafka
        self._topics = Topics(kafka)
        self._functions = functions
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def check(self, statement: InsertValues, catalog: Catalog) -> NewRecord:
        """The record of a statement, not written yet."""
        target = writable(statement.target, catalog)
        return record_of(target, row_of(statement, target, self._functions), now_ms=_now_ms())

    def insert(self, statement: InsertValues, catalog: Catalog) -> None:
        record = self.check(statement, catalog)
        self._check_topic(writable(statement.target, catalog))
        try:
            self._send(record).result()
        except KafkaError as error:
            raise _failed(statement.target, error, hint="Send the statement again.") from None

    def insert_rows(
        self, target_name: str, rows: Sequence[Mapping[str, Any]], catalog: Catalog
    ) -> list[SqlError | None]:
        """Rows as JSON objects, each acknowledged with None or refused with its reason."""
        target = writable(target_name, catalog)
        self._check_topic(target)
        sent = [self._sent(target, row) for row in rows]
        return [each if isinstance(each, SqlError) else _outcome(each, target) for each in sent]

    def _sent(self, target: Source, row: Mapping[str, Any]) -> Delivery | SqlError:
        try:
            return self._send(record_of(target, row_of_json(row, target), now_ms=_now_ms()))
        except SqlError as error:
            return error
        except KafkaError as error:
            return _failed(target.name, error)

    def _check_topic(self, target: Source) -> None:
        """A producer waits for a topic that is not there, in case it comes."""
        try:
            found = self._topics.facts([target.topic], _LOOK_UP_MS)
        except EngineError as error:
            raise _failed(target.name, error, hint="Send the statement again.") from None
        if not found:
            raise NoTopicError(
                f"Failed to insert values into '{target.name}'. Its topic '{target.topic}' does not exist.",
                hint=remedy(target.node()),
            )

    def _send(self, record: NewRecord) -> Delivery:
        with self._lock:
            if self._producer is None:
                self._producer = Producer(self._kafka.config("inserts", {**_PATIENCE, **self._kafka.properties}))
        return self._producer.send(record.topic, record.value, record.key, timestamp_ms=record.timestamp_ms)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._topics.close()


def writable(name: str, catalog: Catalog) -> Source:
    """The stream or table of this name, if rows may be put into it."""
    target = catalog.sources.get(name)
    if target is None:
        raise SemanticError(
            f"Cannot insert values into an unknown stream/table: {name}.", hint=similar_source(name, catalog)
        )
    if target.read_only:
        raise SemanticError(f"Cannot insert values into read-only {target.kind.lower()}: {target.name}")
    if target.windowed is not None:
        raise SemanticError("Cannot insert values into windowed stream/table!")
    return target


def row_of(statement: InsertValues, target: Source, functions: FunctionRegistry) -> dict[str, Any]:
    """The values of INSERT VALUES, by column, in the types of the columns."""
    names = statement.columns or tuple(column.name for column in (*target.schema.key, *target.schema.value))
    if len(names) != len(statement.values):
        raise _wrong_count(statement, names)
    return {
        name: _evaluated(name, value, _type_of(name, target), functions)
        for name, value in zip(names, statement.values, strict=True)
    }


def row_of_json(row: Mapping[str, Any], target: Source) -> dict[str, Any]:
    """Names in any case for columns in upper case; in back-ticks they are exact."""
    values: dict[str, Any] = {}
    for written, value in row.items():
        quoted = len(written) > 1 and written[0] == written[-1] == "`"
        name = written[1:-1] if quoted else written.upper()
        sql_type = _type_of(name, target)
        try:
            values[name] = column_value(value, sql_type)
        except ValueError as error:
            raise SemanticError(f"Failed to insert values into '{target.name}'. Column {name}: {error}.") from None
    return values


def record_of(target: Source, row: Mapping[str, Any], *, now_ms: int) -> NewRecord:
    missing = [column.name for column in target.schema.key if row.get(column.name) is None]
    if missing and target.kind == "TABLE":
        raise SemanticError(f"Value for primary key column(s) {', '.join(missing)} is required for tables")
    try:
        key, value = RowEncoder(_as_sink(target)).encode_row(row, row)
    except BadValueError as error:
        raise SemanticError(f"Failed to insert values into '{target.name}'. {error}") from None
    time_ms = row.get(ROWTIME)
    return NewRecord(topic=target.topic, key=key, value=value, timestamp_ms=now_ms if time_ms is None else time_ms)


def _as_sink(target: Source) -> Sink:
    return Sink(
        name=target.name,
        kind=target.kind,
        topic=target.topic,
        schema=target.schema,
        key_format=target.key_format,
        value_format=target.value_format,
    )


def _type_of(name: str, target: Source) -> SqlType:
    if name == ROWTIME:
        return BIGINT
    if name in RESERVED_NAMES:
        raise SemanticError(f"Inserting into column {name} is not allowed.")
    column = target.schema.column(name)
    if column is None:
        known = ", ".join(each.name for each in target.schema.columns)
        raise SemanticError(f"Column name {name} does not exist.", hint=f"{target.name} has {known}.")
    if column in target.schema.headers:
        raise SemanticError(f"Cannot insert into HEADER columns: {name}")
    return column.type


def _wrong_count(statement: InsertValues, names: Sequence[str]) -> SemanticError:
    if statement.columns:
        return SemanticError(f"Expected number columns and values to match: {len(names)}, {len(statement.values)}")
    got = ", ".join(map(format_expression, statement.values))
    return SemanticError(
        f"Expected a value for each column. Expected Columns: [{', '.join(names)}]. Got [{got}].",
        hint="Name the columns, as in INSERT INTO target (a, b) VALUES (...).",
    )


def _evaluated(name: str, value: Expression, wanted: SqlType, functions: FunctionRegistry) -> Any:
    if columns_of(value):
        raise SemanticError(f"Unsupported column reference in INSERT VALUES: {format_expression(value)}")
    given = infer(value, {}, functions)
    if name == ROWTIME and given == STRING:
        return parse_instant_ms(str(compile_as(value, STRING, {}, functions)({})))
    if not _fits(given, wanted):
        raise SemanticError(
            f"Expected type {wanted} for field `{name}` but got {given}({format_expression(value)}).",
            hint=_fitting(wanted),
        )
    troubles: list[str] = []
    result = compile_as(value, wanted, {}, functions, troubles.append)({})
    if troubles:
        raise SemanticError(f"The value {format_expression(value)} for column {name} ({wanted}): {troubles[0]}")
    if isinstance(wanted, Decimal) and is_number(given):
        _check_exact(name, compile_as(value, given, {}, functions)({}), result, wanted)
    return result


def _check_exact(name: str, given: Any, result: Any, wanted: Decimal) -> None:
    """As in ksqlDB, digits are not dropped without being asked to."""
    if result is not None and decimal.Decimal(str(given)) != result:
        raise SemanticError(
            f"Cannot fit decimal '{given}' into {wanted} without rounding, for field `{name}`.",
            hint=f"Round it with CAST(... AS {wanted}), or write fewer digits.",
        )


def _fitting(wanted: SqlType) -> str:
    if is_number(wanted):
        return f"Write a number that fits, or CAST to {wanted}."
    if wanted == STRING or wanted in _TEXTS:
        return "Write it as text, in single quotes."
    return f"Write a value of that type, or CAST to {wanted}." if wanted == BOOLEAN else "Write one of that form."


def _fits(given: SqlType, wanted: SqlType) -> bool:
    """Numbers widen, any number may become a DECIMAL that holds it, and times and bytes are written as text."""
    if given == NULL or common_type(given, wanted) == wanted:
        return True
    if isinstance(wanted, Decimal):
        return is_number(given)
    return given == STRING and wanted in _TEXTS


def _outcome(delivery: Delivery, target: Source) -> SqlError | None:
    try:
        delivery.result()
    except KafkaError as error:
        return _failed(target.name, error)
    return None


def _failed(name: str, error: Exception, hint: str | None = None) -> EngineError:
    return EngineError(f"Failed to insert values into '{name}'. {sentence(error)}", hint=hint)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
