"""Answers of the server as tables, one function for each kind; what has none is shown as it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Entity = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`title` stands above, `notes` below; a table without columns is only its texts."""

    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def tables_of(entity: Entity) -> list[Table]:
    show = _SHOWN.get(str(entity.get("@type")), _anything)
    warnings = tuple(f"Warning: {warning['message']}" for warning in entity.get("warnings") or ())
    return [*show(entity), *([Table(notes=warnings)] if warnings else [])]


def type_text(schema: Mapping[str, Any]) -> str:
    """A type in the form people write it."""
    kind = schema["type"]
    if kind == "ARRAY":
        return f"ARRAY<{type_text(schema['memberSchema'])}>"
    if kind == "MAP":
        return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
    if kind == "STRUCT":
        fields = (f"{field['name']} {type_text(field['schema'])}" for field in schema["fields"])
        return f"STRUCT<{', '.join(fields)}>"
    if kind == "DECIMAL" and schema.get("parameters"):
        return f"DECIMAL({schema['parameters']['precision']}, {schema['parameters']['scale']})"
    return str(kind)


def _listed(
    field: str, columns: Mapping[str, str | Callable[[Any], str]], empty: str
) -> Callable[[Entity], list[Table]]:
    """A table of what is in `field`: each column by its title, from a key or computed."""

    def show(entity: Entity) -> list[Table]:
        items = entity[field]
        if not items:
            return [Table(notes=(empty,))]
        rows = tuple(
            tuple(value(item) if callable(value) else _text(item.get(value)) for value in columns.values())
            for item in items
        )
        return [Table(columns=tuple(columns), rows=rows)]

    return show


def _text(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


def _first_line(text: str) -> str:
    """A statement is as long as people write it: DESCRIBE and EXPLAIN show all of it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first.rstrip()} ..." if rest else first


def _status(entity: Entity) -> list[Table]:
    status = entity["commandStatus"]
    return [Table(notes=(f"{status['message'] or status['status']}{_stop(status['message'])}",))]


def _stop(text: str | None) -> str:
    return "" if not text or text.endswith((".", "!")) else "."


def _types(entity: Entity) -> list[Table]:
    if not entity["types"]:
        return [Table(notes=("There are no types.",))]
    return [
        Table(columns=("type", "is"), rows=tuple((name, type_text(schema)) for name, schema in entity["types"].items()))
    ]


def _source(entity: Entity) -> list[Table]:
    return _source_tables(entity["sourceDescription"])


def _sources(entity: Entity) -> list[Table]:
    return [table for each in entity["sourceDescriptions"] for table in _source_tables(each)]


def _source_tables(source: Mapping[str, Any]) -> list[Table]:
    window = f", {source['windowType']} windows" if source.get("windowType") else ""
    title = f"{source['name']}: {source['type'].lower()} of topic {source['topic']}, key {source['keyFormat']}, "
    fields = Table(
        title=f"{title}value {source['valueFormat']}{window}", columns=("field", "type"), rows=_fields(source)
    )
    if not source.get("extended"):
        return [fields]
    facts = {
        "partitions": source["partitions"],
        "replication": source["replication"],
        "timestamp column": source["timestamp"],
        "statement": source["statement"],
        "statistics": source["statistics"],
        "errors": source["errorStats"],
        "read by": [query["id"] for query in source["readQueries"]],
        "written by": [query["id"] for query in source["writeQueries"]],
    }
    return [fields, _pairs(facts)]


def _fields(source: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    roles = {"KEY": " (primary key)" if source.get("type") == "TABLE" else " (key)", "HEADER": " (header)"}
    if source.get("windowType"):
        roles["KEY"] += f" (window type: {source['windowType']})"
    return tuple(
        (field["name"], type_text(field["schema"]) + roles.get(field.get("type", ""), "")) for field in source["fields"]
    )


def _pairs(facts: Mapping[str, Any]) -> Table:
    rows = tuple((name, _text(value)) for name, value in facts.items() if _text(value))
    return Table(columns=("", ""), rows=rows)


def _query(entity: Entity) -> list[Table]:
    return _query_tables(entity["queryDescription"])


def _queries_described(entity: Entity) -> list[Table]:
    return [table for each in entity["queryDescriptions"] for table in _query_tables(each)]


def _query_tables(query: Mapping[str, Any]) -> list[Table]:
    facts = {
        "statement": query["statementText"],
        "state": query["state"],
        "reads": query["sources"],
        "writes": query["sinks"],
        "errors": [each["errorMessage"] for each in query["queryErrors"]],
    }
    return [
        Table(title=query["id"], columns=("field", "type"), rows=_fields(query)),
        _pairs(facts),
        Table(title="Plan", notes=(query["executionPlan"],)),
        Table(title="Spark", notes=(query["topology"],)),
    ]


def _function(entity: Entity) -> list[Table]:
    rows = tuple(
        (f"{entity['name']}({', '.join(_argument(each) for each in form['arguments'])})", str(form["returnType"]))
        for form in entity["functions"]
    )
    return [Table(title=f"{entity['name']}: {entity['description']}", columns=("form", "returns"), rows=rows)]


def _argument(argument: Mapping[str, Any]) -> str:
    dots = "..." if argument.get("isVariadic") else ""
    return f"{argument['name']} {argument['type']}{dots}" if argument["name"] else f"{argument['type']}{dots}"


def _anything(entity: Entity) -> list[Table]:
    hidden = ("@type", "statementText", "warnings")
    return [_pairs({name: value for name, value in entity.items() if name not in hidden})]


_SOURCE_COLUMNS: Final[dict[str, str | Callable[[Any], str]]] = {
    "name": "name",
    "topic": "topic",
    "key": "keyFormat",
    "value": "valueFormat",
    "windowed": "isWindowed",
}

_SHOWN: Final[dict[str, Callable[[Entity], list[Table]]]] = {
    "streams": _listed("streams", _SOURCE_COLUMNS, "There are no streams."),
    "tables": _listed("tables", _SOURCE_COLUMNS, "There are no tables."),
    "kafka_topics": _listed(
        "topics",
        {
            "topic": "name",
            "partitions": lambda topic: str(len(topic["replicaInfo"])),
            "replicas": lambda topic: str(max(topic["replicaInfo"], default=0)),
        },
        "There are no topics.",
    ),
    "kafka_topics_extended": _listed(
        "topics",
        {
            "topic": "name",
            "partitions": lambda topic: str(len(topic["replicaInfo"])),
            "consumers": "consumerCount",
            "groups": "consumerGroupCount",
        },
        "There are no topics.",
    ),
    "queries": _listed(
        "queries",
        {
            "id": "id",
            "type": "queryType",
            "state": "state",
            "writes": "sinks",
            "topic": "sinkKafkaTopics",
            "statement": lambda query: _first_line(query["queryString"]),
        },
        "No query runs.",
    ),
    "function_names": _listed(
        "functions", {"function": "name", "kind": "type", "category": "category"}, "There are no functions."
    ),
    "properties": _listed("properties", {"property": "name", "value": "value"}, "There are no properties."),
    "variables": _listed("variables", {"variable": "name", "value": "value"}, "No variable is defined."),
    "currentStatus": _status,
    "type_list": _types,
    "sourceDescription": _source,
    "source_descriptions": _sources,
    "queryDescription": _query,
    "query_descriptions": _queries_described,
    "describe_function": _function,
    "terminate_query": lambda entity: [Table(notes=(f"Query {entity['queryId']} is terminated.",))],
    "warning_entity": lambda entity: [Table(notes=(str(entity["message"]),))],
    "assert_topic": lambda entity: [
        Table(notes=(f"Topic {entity['topicName']} {'exists' if entity['exists'] else 'does not exist'}.",))
    ],
}
