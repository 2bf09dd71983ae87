"""Commands as data: whatever they are, replaying them gives one catalog, and the runner ends with its queries."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.catalog.catalog import Catalog, PersistentQuery, Source
from penstock.sql.commands.actions import Change, Forget, Start, actions_between
from penstock.sql.commands.command import COMMAND_VERSION, Command, apply, decode, encode
from penstock.sql.errors import EngineError
from penstock.sql.plan.nodes import ProjectNode, QueryPlan, Sink
from penstock.sql.schema import ColumnSchema, Format, Schema
from penstock.sql.types import BIGINT, INTEGER, STRING, Array, Field, Map, SqlType, Struct

NAMES = st.sampled_from(["A", "B", "C", "lower"])
QUERY_IDS = st.sampled_from(["CSAS_A_1", "CTAS_B_2", "INSERTQUERY_3"])
SCALARS = st.sampled_from([INTEGER, BIGINT, STRING])
TYPES: st.SearchStrategy[SqlType] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(Array),
        inner.map(lambda value: Map(STRING, value)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: Struct(tuple(Field(f"F{n}", each) for n, each in enumerate(types)))
        ),
    ),
    max_leaves=4,
)


@st.composite
def sources(draw: st.DrawFn) -> Source:
    columns = draw(st.lists(TYPES, max_size=3))
    return Source(
        name=draw(NAMES),
        kind=draw(st.sampled_from(["STREAM", "TABLE"])),
        topic=draw(NAMES),
        schema=Schema(value=tuple(ColumnSchema(f"V{n}", each) for n, each in enumerate(columns))),
        key_format=Format("NONE"),
        value_format=Format("JSON"),
    )


@st.composite
def plans(draw: st.DrawFn) -> QueryPlan:
    origin, target = draw(sources()), draw(sources())
    sink = Sink(
        name=target.name,
        kind=target.kind,
        topic=target.topic,
        schema=target.schema,
        key_format=target.key_format,
        value_format=target.value_format,
    )
    root = ProjectNode(input=origin.node(), key=(), value=())
    query_id = draw(QUERY_IDS)
    return QueryPlan(query_id=query_id, text="", kind="STREAM", root=root, schema=target.schema, sink=sink)


@st.composite
def command_lists(draw: st.DrawFn) -> list[Command]:
    """Commands as the engine writes them: they name only queries that are there."""
    catalog, commands = Catalog(), []
    for number in range(draw(st.integers(0, 12))):
        known = sorted(catalog.queries)
        some = st.lists(st.sampled_from(known), unique=True).map(tuple) if known else st.just(())
        fields = draw(
            st.one_of(
                st.fixed_dictionaries({"sources": st.lists(sources(), max_size=2).map(tuple)}),
                st.fixed_dictionaries({"query": plans(), "sources": sources().map(lambda each: (each,))}),
                st.fixed_dictionaries({"terminated": some, "dropped": st.lists(NAMES, max_size=2).map(tuple)}),
                st.fixed_dictionaries({"types": st.dictionaries(NAMES, TYPES, max_size=2)}),
                st.fixed_dictionaries({"dropped_types": st.lists(NAMES, max_size=2).map(tuple)}),
                st.fixed_dictionaries({"paused": some}),
                st.fixed_dictionaries({"resumed": some}),
            )
        )
        command = Command(unique=str(number), name="x/Y/z", statement="", message="", **fields)
        catalog = apply(catalog, command)
        commands.append(command)
    return commands


def replayed(commands: list[Command]) -> Catalog:
    catalog = Catalog()
    for command in commands:
        catalog = apply(catalog, command)
    return catalog


@given(command_lists())
def test_a_replay_of_written_commands_gives_the_same_catalog(commands: list[Command]) -> None:
    read_back = [decode(encode(command)) for command in commands]
    assert read_back == commands
    assert replayed(read_back) == replayed(commands)


@given(command_lists())
def test_a_catalog_survives_json(commands: list[Command]) -> None:
    catalog = replayed(commands)
    assert msgspec.json.decode(msgspec.json.encode(catalog), type=Catalog) == catalog


@given(command_lists(), st.integers(0, 12))
def test_actions_lead_the_runner_to_the_catalog_from_wherever_it_begins(commands: list[Command], cut: int) -> None:
    """A server that saw every command and one that only saw the end run the same queries."""
    running: dict[str, PersistentQuery] = {}
    catalog = replayed(commands[:cut])
    follow(running, Catalog(), catalog)
    for command in commands[cut:]:
        after = apply(catalog, command)
        follow(running, catalog, after)
        catalog = after
    assert running == dict(catalog.queries)


def follow(running: dict[str, PersistentQuery], before: Catalog, after: Catalog) -> None:
    for action in actions_between(before, after):
        match action:
            case Start(plan=plan, paused=paused):
                running[plan.query_id] = PersistentQuery(plan=plan, state="PAUSED" if paused else "RUNNING")
            case Change(action="STOP", query_id=query_id):
                del running[query_id]
            case Change(action=what, query_id=query_id):
                state = "PAUSED" if what == "PAUSE" else "RUNNING"
                running[query_id] = msgspec.structs.replace(running[query_id], state=state)
            case Forget(source_name=name):
                assert name not in after.sources


def test_a_catalog_is_not_changed_by_what_comes_after_it() -> None:
    before = Catalog().with_type("T", INTEGER)
    after = before.with_type("U", STRING).without_type("T")
    assert dict(before.types) == {"T": INTEGER}
    assert dict(after.types) == {"U": STRING}


def test_a_newer_command_is_refused() -> None:
    command = Command(unique="1", name="x", statement="", message="", version=COMMAND_VERSION + 1)
    with pytest.raises(EngineError, match="incompatible command topic version"):
        decode(encode(command))
