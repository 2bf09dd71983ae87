"""CREATE STREAM and TABLE over topics, and ALTER, on a data file: the source they declare, or the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.sql.catalog.catalog import Source
from penstock.sql.catalog.declaring import declare_source, with_columns
from penstock.sql.errors import SqlError
from penstock.sql.parser import parse
from penstock.sql.plan.explain import format_schema
from penstock.sql.schema import Format
from penstock.sql.statements import AlterSource, CreateSource
from tests.unit.sql.blocks import Block, parameters

BASE = "CREATE STREAM base (a INT KEY, b STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA')"


def declared(text: str) -> Source:
    [parsed] = parse(text)
    if isinstance(parsed.statement, AlterSource):
        return with_columns(declared(BASE.replace("KAFKA'", "JSON'")), parsed.statement, text)
    assert isinstance(parsed.statement, CreateSource)
    return declare_source(parsed.statement, text)


def shown(source: Source) -> str:
    parts = [
        f"{'SOURCE ' if source.read_only else ''}{source.kind} {source.name} on {source.topic}",
        f"({format_schema(source.schema, source.kind)})",
        f"key {shown_format(source.key_format)} value {shown_format(source.value_format)}",
    ]
    if source.windowed:
        parts.append(f"windowed {source.windowed.type} {source.windowed.size_ms}")
    if source.timestamp:
        parts.append(f"timestamp {source.timestamp.column} {source.timestamp.format}")
    return "\n".join(parts)


def shown_format(form: Format) -> str:
    delimiter = f" {form.delimiter!r}" if form.name == "DELIMITED" else ""
    return f"{form.name}{delimiter}{'' if form.wrap_single else ' unwrapped'}"


def answer(text: str) -> str:
    try:
        return shown(declared(text))
    except SqlError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("block", parameters(Path(__file__).parent, answer))
def test_declaration_is_as_written(block: Block) -> None:
    assert answer(block.statement) == block.expected


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("CREATE STREAM s (k INT KEY, a INT) WITH (KAFKA_TOPIC='t')", ("JSON", "DELIMITED")),
        ("CREATE STREAM s (k INT KEY, a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='KAFKA')", ("JSON", "KAFKA")),
        ("CREATE STREAM s (k INT KEY, a INT) WITH (KAFKA_TOPIC='t', FORMAT='KAFKA')", ("KAFKA", "KAFKA")),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t')", ("NONE", "DELIMITED")),
    ],
)
def test_formats_that_are_not_named_are_those_of_the_settings(text: str, formats: tuple[str, str]) -> None:
    settings = {"ksql.persistence.default.format.key": "json", "ksql.persistence.default.format.value": "DELIMITED"}
    [parsed] = parse(text)
    assert isinstance(parsed.statement, CreateSource)
    source = declare_source(parsed.statement, text, settings)
    assert (source.key_format.name, source.value_format.name) == formats


def test_a_column_that_the_format_cannot_hold_is_not_added() -> None:
    [parsed] = parse("ALTER STREAM base ADD COLUMN c INT;")
    assert isinstance(parsed.statement, AlterSource)
    with pytest.raises(SqlError, match="only supports a single field"):
        with_columns(declared(BASE), parsed.statement, "")
