"""Plans of statements over the sources of `sources.sql`."""

from __future__ import annotations

from pathlib import Path

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.declaring import declare_source
from penstock.sql.catalog.properties import read_properties
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse
from penstock.sql.plan.planner import Planned, SinkRequest, plan_query
from penstock.sql.statements import CreateAsSelect, CreateSource, InsertSelect, SelectStatement

FUNCTIONS = FunctionRegistry.builtin()


def catalog_of_sources() -> Catalog:
    catalog = Catalog()
    for parsed in parse((Path(__file__).parent / "sources.sql").read_text()):
        assert isinstance(parsed.statement, CreateSource)
        catalog = catalog.with_source(declare_source(parsed.statement, parsed.text))
    return catalog


CATALOG = catalog_of_sources()


def plan(text: str) -> Planned:
    [parsed] = parse(text)
    statement = parsed.statement
    match statement:
        case SelectStatement(query=query):
            return plan_query(query, CATALOG, FUNCTIONS, query_id="transient", text=text)
        case CreateAsSelect():
            properties = read_properties(statement.properties, of_query=True)
            sink = SinkRequest(name=statement.name, kind=statement.kind, properties=properties)
            return plan_query(statement.query, CATALOG, FUNCTIONS, query_id="Q", text=text, sink=sink)
        case InsertSelect():
            target = CATALOG.sources[statement.target]
            sink = SinkRequest(name=target.name, kind=target.kind, target=target)
            return plan_query(statement.query, CATALOG, FUNCTIONS, query_id="Q", text=text, sink=sink)
    raise AssertionError(f"not a query: {text}")
