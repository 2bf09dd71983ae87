"""SHOW, LIST and DESCRIBE: questions about what there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock import KafkaError
from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.engine.describing import Descriptions
from penstock.sql.engine.entities import (
    Entity,
    entity,
    function_description,
    function_info,
    property_infos,
    source_info,
    type_infos,
)
from penstock.sql.engine.properties import is_settable
from penstock.sql.engine.refusing import connectors_refused
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import SemanticError
from penstock.sql.functions.model import Function
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.plan.scope import similar_source
from penstock.sql.statements import Describe, ListThings

_RUNS: Final = {"state": "RUNNING"}
"""What is to be said of a push query that is open."""


class Listings:
    """`push_plans` gives the plans of the push queries that are open."""

    def __init__(
        self,
        functions: FunctionRegistry,
        topics: Topics,
        descriptions: Descriptions,
        push_plans: Callable[[], Sequence[QueryPlan]] = tuple,
    ) -> None:
        self._functions = functions
        self._push_plans = push_plans
        self._topics = topics
        self._descriptions = descriptions

    def show(
        self,
        statement: ListThings,
        text: str,
        catalog: Catalog,
        *,
        properties: Mapping[str, Any],
        overridden: Mapping[str, Any],
        variables: Mapping[str, str],
    ) -> Entity:
        match statement.thing:
            case "STREAMS" | "TABLES":
                return self._sources(statement, text, catalog)
            case "TOPICS" | "ALL TOPICS":
                return self._kafka_topics(text, everything=statement.thing == "ALL TOPICS", extended=statement.extended)
            case "QUERIES":
                return self._queries(statement, text, catalog)
            case "FUNCTIONS":
                infos = [function_info(function) for function in self._functions.all()]
                return entity("function_names", text, functions=infos)
            case "TYPES":
                return entity("type_list", text, types=type_infos(catalog.types))
            case "PROPERTIES":
                return _properties(text, properties, overridden)
            case "VARIABLES":
                listed = [{"name": name, "value": variables[name]} for name in sorted(variables)]
                return entity("variables", text, variables=listed)
            case _:
                raise connectors_refused()

    def describe(self, statement: Describe, text: str, catalog: Catalog) -> Entity:
        match statement.what:
            case "FUNCTION":
                return self._function(statement.name or "", text)
            case "STREAMS" | "TABLES":
                return self._all_described(statement.what, text, catalog, extended=statement.extended)
            case "CONNECTOR":
                raise connectors_refused()
            case "SOURCE":
                return self._source(statement, text, catalog)

    def check(self, statement: Describe, catalog: Catalog) -> None:
        """Whether what is to be described is there."""
        if statement.what == "SOURCE":
            _source_named(statement.name or "", catalog)
        elif statement.what == "FUNCTION":
            self._function_named(statement.name or "")

    def _source(self, statement: Describe, text: str, catalog: Catalog) -> Entity:
        source = _source_named(statement.name or "", catalog)
        described = self._descriptions.source(source, catalog, extended=statement.extended)
        return entity("sourceDescription", text, sourceDescription=described)

    def _sources(self, statement: ListThings, text: str, catalog: Catalog) -> Entity:
        if statement.extended:
            return self._all_described(statement.thing, text, catalog, extended=True)
        if statement.thing == "STREAMS":
            return entity("streams", text, streams=[source_info(source) for source in catalog.of_kind("STREAM")])
        return entity("tables", text, tables=[source_info(source) for source in catalog.of_kind("TABLE")])

    def _all_described(self, what: str, text: str, catalog: Catalog, *, extended: bool) -> Entity:
        sources = catalog.of_kind("STREAM" if what == "STREAMS" else "TABLE")
        described = [self._descriptions.source(source, catalog, extended=extended) for source in sources]
        return entity("source_descriptions", text, sourceDescriptions=described)

    def _queries(self, statement: ListThings, text: str, catalog: Catalog) -> Entity:
        queries, watched = catalog.queries.values(), self._push_plans()
        if statement.extended:
            described = [self._descriptions.query(query.plan, query, query.plan.properties) for query in queries]
            described += [{**self._descriptions.query(plan, None, plan.properties), **_RUNS} for plan in watched]
            return entity("query_descriptions", text, queryDescriptions=described)
        listed = [*map(self._descriptions.running, queries), *map(_push_query, watched)]
        return entity("queries", text, queries=listed)

    def _function(self, name: str, text: str) -> Entity:
        return entity("describe_function", text, **function_description(self._function_named(name)))

    def _function_named(self, name: str) -> Function:
        function = self._functions.get(name)
        if function is None:
            raise SemanticError(f"Can't find any functions with the name '{name}'.", hint="SHOW FUNCTIONS lists them.")
        return function

    def _kafka_topics(self, text: str, *, everything: bool, extended: bool) -> Entity:
        """Names that begin with an underscore are the platform's own: ALL shows them too."""
        names = [name for name in self._topics.names() if everything or not name.startswith("_")]
        described = self._topics.describe(names)
        infos: list[Entity] = [
            {"name": name, "replicaInfo": [len(each.replicas) for each in described[name].partitions]}
            for name in sorted(described)
        ]
        if not extended:
            return entity("kafka_topics", text, topics=infos)
        groups, members = self._consumers()
        for info in infos:
            info |= {"consumerCount": members.get(info["name"], 0), "consumerGroupCount": groups.get(info["name"], 0)}
        return entity("kafka_topics_extended", text, topics=infos)

    def _consumers(self) -> tuple[dict[str, int], dict[str, int]]:
        """By topic: groups with offsets in it, and members that read it. A cluster that does not tell has none."""
        admin = self._topics.admin
        groups: dict[str, int] = {}
        members: dict[str, int] = {}
        try:
            names = list(admin.list_groups())
            offsets = admin.list_group_offsets(names) if names else {}
            described = admin.describe_groups(names) if names else {}
        except KafkaError:
            return groups, members
        for group in offsets.values():
            for topic in {partition.topic for partition in group}:
                groups[topic] = groups.get(topic, 0) + 1
        for description in described.values():
            for member in description.members:
                for topic in {partition.topic for partition in member.assignment}:
                    members[topic] = members.get(topic, 0) + 1
        return groups, members


def _source_named(name: str, catalog: Catalog) -> Source:
    source = catalog.sources.get(name)
    if source is None:
        raise SemanticError(
            f"Could not find STREAM/TABLE '{name}' in the Metastore.", hint=similar_source(name, catalog)
        )
    return source


def _push_query(plan: QueryPlan) -> Entity:
    return {
        "queryString": plan.text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": plan.query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        **_RUNS,
    }


def _properties(text: str, properties: Mapping[str, Any], overridden: Mapping[str, Any]) -> Entity:
    shown = {**properties, **overridden}
    editable = [name for name in shown if is_settable(name)]
    return entity(
        "properties",
        text,
        properties=property_infos(shown, editable),
        overwrittenProperties=sorted(overridden),
        defaultProperties=sorted(set(properties) - set(overridden)),
    )
