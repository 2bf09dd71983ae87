"""The engine: statements in, effects and answers out.

A request is parsed whole, then its statements are tried one after the other on a copy of the catalog, so that a
request with an error in its last statement does nothing. Then the statements are done one by one: changes go through
the command topic, which every server replays; questions are answered from the catalog, the cluster and the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock import KafkaError
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.commands.command import Command
from penstock.sql.engine.asserting import assert_topic
from penstock.sql.engine.changing import Changes, Trial
from penstock.sql.engine.decisions.deciding import Changing
from penstock.sql.engine.decisions.queries import plan_statement
from penstock.sql.engine.describing import Descriptions
from penstock.sql.engine.entities import Entity, entity
from penstock.sql.engine.inserting import Inserter
from penstock.sql.engine.listing import Listings
from penstock.sql.engine.ports import QueryRunner
from penstock.sql.engine.properties import is_settable
from penstock.sql.engine.refusing import check_endpoint, refused
from penstock.sql.engine.requests import Request
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import CommandTopicBusyError, SemanticError, SqlError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.parser import parse
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.plan.planner import Planned, plan_query
from penstock.sql.statements import (
    AssertTopic,
    ControlQuery,
    CreateAsSelect,
    DefineVariable,
    Describe,
    Explain,
    InsertSelect,
    InsertValues,
    ListThings,
    ParsedStatement,
    SelectStatement,
    SetProperty,
    Statement,
    UndefineVariable,
    UnsetProperty,
)

_SEQUENCE_TIMEOUT_S = 5.0
"""As ksqlDB's ksql.server.command.response.timeout.ms."""

_HEALTH_TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """`properties` are the server's, as SHOW PROPERTIES tells them; those of queries among them are their defaults."""

    version: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)


class Engine:
    def __init__(
        self,
        *,
        kafka: KafkaAccess,
        functions: FunctionRegistry,
        runner: QueryRunner,
        settings: EngineSettings | None = None,
    ) -> None:
        self.close_transient: Callable[[str], bool] = lambda query_id: False
        """Ends a push query by its id, and says whether there was one."""
        self.push_plans: Callable[[], Sequence[QueryPlan]] = tuple
        """The plans of the push queries that are open."""
        self._settings = settings or EngineSettings()
        self._functions = functions
        self._topics = Topics(kafka)
        self._inserter = Inserter(kafka, functions)
        self._descriptions = Descriptions(runner, self._topics, kafka.service_id)
        self._listings = Listings(functions, self._topics, self._descriptions, lambda: self.push_plans())
        self._changes = Changes(kafka, functions, runner, self._topics, self._settings.properties)
        self._commands = self._changes.commands
        self._replay = self._commands.replay

    # -- Life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to replay the command topic; returns at once."""
        self._commands.start()

    def close(self) -> None:
        self._commands.close()
        self._inserter.close()
        self._topics.close()

    @property
    def ready(self) -> bool:
        return self._replay.ready

    def wait_ready(self, timeout_s: float) -> bool:
        return self._replay.wait_ready(timeout_s)

    @property
    def catalog(self) -> Catalog:
        return self._commands.catalog

    @property
    def kafka_cluster_id(self) -> str:
        return self._topics.admin.describe_cluster().cluster_id or ""

    def health(self) -> dict[str, bool]:
        return {
            "metastore": self.ready,
            "kafka": self._kafka_answers(),
            "commandRunner": self._replay.failure is None,
        }

    def _kafka_answers(self) -> bool:
        try:
            self._topics.admin.describe_cluster(timeout_ms=_HEALTH_TIMEOUT_MS)
        except KafkaError:
            return False
        return True

    # -- Statements ------------------------------------------------------------------------------------------------

    def parse(self, text: str, variables: Mapping[str, str] | None = None) -> list[ParsedStatement]:
        return parse(text, types=self.catalog.types, variables=variables)

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
        command_sequence_number: int | None = None,
    ) -> list[Entity]:
        """Do the statements of a text in turn. A SqlError tells the statement, and what those before it gave."""
        self._wait_for_command(command_sequence_number)
        request = Request(dict(properties or {}), dict(variables or {}))
        parsed = self.parse(text, request.variables)
        if len(parsed) > 1:
            self._try_all(parsed, request.copy())
        entities: list[Entity] = []
        for each in parsed:
            try:
                entities += self._do(each.statement, _text(each), request)
            except SqlError as error:
                raise _told(error, each, entities) from None
        return entities

    def insert_rows(self, target: str, rows: Sequence[Mapping[str, Any]]) -> list[SqlError | None]:
        return self._inserter.insert_rows(target, rows, self.catalog)

    def is_valid_property(self, name: str) -> bool:
        return is_settable(name)

    def command_statuses(self) -> dict[str, Entity]:
        """Of the last command of each name."""
        return {name: _status(command) for name, command in self._replay.applied.items()}

    def terminate_cluster(self, delete_topics: Sequence[str] = ()) -> list[Entity]:
        """End all queries, drop all sources, and delete those topics of queries that match a regular expression."""
        return [self._changes.end_all("TERMINATE CLUSTER;", delete_topics)]

    def _wait_for_command(self, sequence_number: int | None) -> None:
        if sequence_number is None or sequence_number < 0:
            return
        if not self._replay.wait_applied(sequence_number, _SEQUENCE_TIMEOUT_S):
            raise CommandTopicBusyError(
                f"Timeout reached while waiting for command sequence number of {sequence_number}. "
                f"(Timeout: {_SEQUENCE_TIMEOUT_S * 1000:.0f} ms)"
            )

    def _try_all(self, parsed: Sequence[ParsedStatement], request: Request) -> None:
        trial = self._changes.trial()
        for each in parsed:
            try:
                check_endpoint(each.statement)
                request.note(each.statement)
                self._try(each.statement, _text(each), request, trial)
            except SqlError as error:
                raise _told(error, each, []) from None

    def _try(self, statement: Statement, text: str, request: Request, trial: Trial) -> None:
        match statement:
            case ControlQuery(action="TERMINATE", query_id=str(query_id)) if self._push_plan(query_id) is not None:
                return
            case InsertValues():
                self._inserter.check(statement, trial.catalog)
            case Describe():
                self._listings.check(statement, trial.catalog)
            case Explain(query_id=None):
                self._planned(statement.statement, text, request, trial.catalog)
        if isinstance(statement, Changing):
            trial.change(statement, text, request)

    def _do(self, statement: Statement, text: str, request: Request) -> list[Entity]:
        check_endpoint(statement)
        match statement:
            case ControlQuery(action="TERMINATE", query_id=str(query_id)) if query_id not in self.catalog.queries:
                return [self._terminate_transient(query_id, text)]
            case SetProperty() | UnsetProperty() | DefineVariable() | UndefineVariable():
                request.note(statement)
                return []
            case InsertValues():
                self._inserter.insert(statement, self.catalog)
                return []
            case ListThings():
                return [self._show(statement, text, request)]
            case Describe():
                return [self._listings.describe(statement, text, self.catalog)]
            case Explain():
                return [self._explain(statement, text, request)]
            case AssertTopic():
                assert_topic(statement, self._topics)
                return [entity("assert_topic", text, topicName=statement.name, exists=statement.exists)]
        if isinstance(statement, Changing):
            return [self._changes.change(statement, text, request)]
        raise refused(statement)

    def _show(self, statement: ListThings, text: str, request: Request) -> Entity:
        return self._listings.show(
            statement,
            text,
            self.catalog,
            properties=self._settings.properties,
            overridden=request.properties,
            variables=request.variables,
        )

    def _terminate_transient(self, query_id: str, text: str) -> Entity:
        if not self.close_transient(query_id):
            raise SemanticError(f"Unknown queryId: {query_id}.", hint="SHOW QUERIES lists those there are.")
        return entity("terminate_query", text, queryId=query_id, wasTerminated=True)

    def _push_plan(self, query_id: str) -> QueryPlan | None:
        """Unquoted, the id of a push query arrives in upper case."""
        return next((plan for plan in self.push_plans() if plan.query_id.upper() == query_id.upper()), None)

    def _explain(self, statement: Explain, text: str, request: Request) -> Entity:
        if statement.query_id is None:
            planned = self._planned(statement.statement, text, request, self.catalog)
            described = self._descriptions.query(planned.plan, None, request.properties)
            return entity("queryDescription", text, planned.warnings, queryDescription=described)
        query = self.catalog.queries.get(statement.query_id)
        if query is None:
            raise SemanticError(
                f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view the full set of queries."
            )
        described = self._descriptions.query(query.plan, query, query.plan.properties)
        return entity("queryDescription", text, queryDescription=described)

    def _planned(self, statement: Statement | None, text: str, request: Request, catalog: Catalog) -> Planned:
        match statement:
            case SelectStatement(query=query):
                return plan_query(query, catalog, self._functions, query_id="EXPLAINED", text=text)
            case CreateAsSelect() | InsertSelect():
                situation = self._changes.situation(text, request, catalog)
                return plan_statement(statement, situation, query_id="EXPLAINED")
            case _:
                raise SemanticError(
                    "The provided statement does not run a ksql query.", hint="EXPLAIN takes a SELECT or a query id."
                )


def _text(parsed: ParsedStatement) -> str:
    return parsed.text + ";"


def _told(error: SqlError, parsed: ParsedStatement, entities: Sequence[Entity]) -> SqlError:
    parsed.places.tell(error)
    error.statement_text = _text(parsed)
    error.entities = entities
    return error


def _status(command: Command) -> Entity:
    query_id = command.query.query_id if command.query else None
    return {"status": "SUCCESS", "message": command.message, "queryId": query_id}
