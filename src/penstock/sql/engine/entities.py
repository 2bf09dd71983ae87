"""Answers to statements, in the shapes ksqlDB's clients know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.sql.catalog.catalog import PersistentQuery, Source
from penstock.sql.engine.ports import QueryStatus
from penstock.sql.functions.model import Function
from penstock.sql.schema import HeaderColumn, Schema
from penstock.sql.types import SqlType, describe

Entity = dict[str, Any]


def entity(kind: str, text: str, warnings: Iterable[str] = (), **body: Any) -> Entity:
    return {
        "@type": kind,
        "statementText": text,
        **body,
        "warnings": [{"message": warning} for warning in warnings],
    }


def command_status(
    text: str,
    *,
    command_id: str,
    status: str,
    message: str,
    query_id: str | None,
    sequence_number: int,
    warnings: Iterable[str] = (),
) -> Entity:
    return entity(
        "currentStatus",
        text,
        warnings,
        commandId=command_id,
        commandStatus={"status": status, "message": message, "queryId": query_id},
        commandSequenceNumber=sequence_number,
    )


def source_info(source: Source) -> Entity:
    return {
        "type": source.kind,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "isWindowed": source.windowed is not None,
    }


def fields_of(schema: Schema) -> list[Entity]:
    keys = [{"name": column.name, "schema": describe(column.type), "type": "KEY"} for column in schema.key]
    values = [{"name": column.name, "schema": describe(column.type)} for column in schema.value]
    return [*keys, *values, *map(_header_field, schema.headers)]


def _header_field(column: HeaderColumn) -> Entity:
    key = {} if column.key is None else {"headerKey": column.key}
    return {"name": column.name, "schema": describe(column.type), "type": "HEADER", **key}


def state_of(query: PersistentQuery, status: QueryStatus | None) -> str:
    """How a query fares; the runner has not heard yet of one that it does not know."""
    if status is not None:
        return status.state
    return "PAUSED" if query.state == "PAUSED" else "STARTING"


def known_state(state: str) -> str:
    """Where ksqlDB's clients take only the states they know."""
    return "RUNNING" if state == "STARTING" else state


def running_query(query: PersistentQuery, status: QueryStatus | None) -> Entity:
    state, sink = state_of(query, status), query.plan.sink
    return {
        "queryString": query.plan.text,
        "sinks": [query.sink_name],
        "sinkKafkaTopics": [sink.topic] if sink else [],
        "id": query.query_id,
        "statusCount": {known_state(state): 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def function_info(function: Function) -> Entity:
    return {"name": function.name, "type": function.kind, "category": function.category}


def function_description(function: Function) -> Entity:
    return {
        "name": function.name,
        "description": function.description,
        "author": function.author,
        "version": "",
        "path": "internal",
        "functions": [_signature(function, signature) for signature in function.signatures],
        "type": function.kind,
    }


def _signature(function: Function, signature: Any) -> Entity:
    last = len(signature.parameters) - 1
    arguments = [
        {
            "name": parameter.name,
            "type": str(parameter.pattern),
            "description": "",
            "isVariadic": signature.variadic and position == last,
        }
        for position, parameter in enumerate(signature.parameters)
    ]
    returns = "DERIVED" if callable(signature.returns) else str(signature.returns)
    return {"arguments": arguments, "returnType": returns, "description": function.description}


def type_infos(types: Mapping[str, SqlType]) -> Entity:
    return {name: describe(types[name]) for name in sorted(types)}


def property_infos(properties: Mapping[str, Any], editable: Sequence[str]) -> list[Entity]:
    return [
        {"name": name, "scope": "KSQL", "value": str(properties[name]), "editable": name in editable, "level": "SERVER"}
        for name in sorted(properties)
    ]
