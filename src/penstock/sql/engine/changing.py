"""Changes: decided on the newest catalog, written into the command topic, followed by the runner of queries."""

from __future__ import annotations

import dataclasses
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.sql import processing_log
from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.commands.actions import Action, Forget, Start, actions_between
from penstock.sql.commands.command import Command, apply
from penstock.sql.commands.topic import Appended, CommandTopic
from penstock.sql.engine.decisions.deciding import Changing, decide, topics_of
from penstock.sql.engine.decisions.situation import Decision, Situation
from penstock.sql.engine.entities import Entity, command_status, entity
from penstock.sql.engine.new_topics import NewTopicRequest, TopicFacts
from penstock.sql.engine.ports import QueryRunner
from penstock.sql.engine.properties import query_properties
from penstock.sql.engine.requests import Request
from penstock.sql.engine.starts import with_starts
from penstock.sql.engine.topics import Topics
from penstock.sql.errors import SemanticError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess
from penstock.sql.schema import Format

log = logging.getLogger(__name__)

_END_TIMEOUT_S = 60.0
"""How long the one who ends or pauses queries waits for that."""


class Changes:
    """`defaults` are the server's settings of queries."""

    def __init__(
        self,
        kafka: KafkaAccess,
        functions: FunctionRegistry,
        runner: QueryRunner,
        topics: Topics,
        defaults: Mapping[str, Any],
    ) -> None:
        self._functions = functions
        self._runner = runner
        self._topics = topics
        self._defaults = defaults
        self.commands = CommandTopic(kafka, initial_catalog(kafka.service_id), self._follow)

    def trial(self) -> Trial:
        return Trial(self)

    def change(self, statement: Changing, text: str, request: Request) -> Entity:
        decided: list[Decision] = []

        def on(catalog: Catalog, offset: int) -> Command | None:
            decision = self._decide_for_good(statement, text, request, catalog, offset)
            decided.append(decision)
            return decision.command

        appended = self.commands.append(on)
        decision = decided[-1]
        if appended.command is None:
            return entity("warning_entity", text, message=decision.note or "")
        warnings = decision.warnings
        ended = self._wait_ended(appended)
        if decision.deleted_topic is not None:
            warnings += self._delete_topics([decision.deleted_topic], ended)
        return _answer(text, appended, warnings)

    def end_all(self, text: str, topic_patterns: Sequence[str]) -> Entity:
        """End all queries, drop all sources, and delete those topics of queries whose names match."""
        patterns = [_pattern(text) for text in topic_patterns]
        written = [query.plan.sink.topic for query in self.commands.catalog.queries.values() if query.plan.sink]
        appended = self.commands.append(lambda catalog, offset: _end_of(catalog, text))
        deleted = [topic for topic in written if any(pattern.fullmatch(topic) for pattern in patterns)]
        return _answer(text, appended, self._delete_topics(deleted, self._wait_ended(appended)))

    def _wait_ended(self, appended: Appended) -> bool:
        """Whether what the command ends has ended here. Only the one who asked waits, not the replay of commands."""
        command = appended.command
        assert command is not None
        query_ids = (*command.terminated, *command.paused)
        return appended.applied and self._runner.wait_ended(query_ids, command.dropped, _END_TIMEOUT_S)

    def _delete_topics(self, topics: Sequence[str], ended: bool) -> tuple[str, ...]:
        """What a query may still write is not deleted, and that is told."""
        if not ended:
            return tuple(
                f"The topic {topic} was not deleted: its query did not stop in time. Delete it once the query has."
                for topic in topics
            )
        for topic in topics:
            self._topics.delete(topic)
        return ()

    def situation(
        self,
        text: str,
        request: Request,
        catalog: Catalog,
        *,
        offset: int = 0,
        topics: Mapping[str, TopicFacts] | None = None,
    ) -> Situation:
        return Situation(
            catalog=catalog,
            functions=self._functions,
            topics=topics or {},
            properties=query_properties(self._defaults, request.properties),
            text=text,
            offset=offset,
            unique=uuid.uuid4().hex,
        )

    def facts(self, statement: Changing, catalog: Catalog, made: Mapping[str, TopicFacts]) -> dict[str, TopicFacts]:
        """The topics a decision asks about; `made` are those that statements before it would have made."""
        return {**made, **self._topics.facts(topics_of(statement, catalog) - made.keys())}

    def _decide_for_good(
        self, statement: Changing, text: str, request: Request, catalog: Catalog, offset: int
    ) -> Decision:
        """Decide, and make sure that what was decided can run, before it is written down."""
        topics = self.facts(statement, catalog, {})
        decision = decide(statement, self.situation(text, request, catalog, offset=offset, topics=topics))
        if decision.new_topic is not None:
            self._topics.create(decision.new_topic)
        if decision.command is None or decision.command.query is None:
            return decision
        replaced = catalog.queries.get(decision.command.query.query_id)
        query = with_starts(decision.command.query, self._topics, replaced.plan if replaced else None)
        self._runner.check(query)
        return dataclasses.replace(decision, command=msgspec.structs.replace(decision.command, query=query))

    # Called in the thread that replays the command topic: nothing here may wait, or all other statements would too.

    def _follow(self, before: Catalog, after: Catalog) -> None:
        for action in actions_between(before, after):
            try:
                self._act(action)
            except Exception:  # one query must not keep the others from following
                log.exception("A query could not follow its command: %s", action)

    def _act(self, action: Action) -> None:
        if isinstance(action, Start):
            self._runner.start(action.plan, paused=action.paused)
        elif isinstance(action, Forget):
            self._runner.forget_source(action.source_name)
        elif action.action == "STOP":
            self._runner.stop(action.query_id, forget=True)
        elif action.action == "PAUSE":
            self._runner.pause(action.query_id)
        else:
            self._runner.resume(action.query_id)


class Trial:
    """Statements tried one after the other on a copy of the catalog; nothing is done."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.catalog = changes.commands.catalog
        self._made: dict[str, TopicFacts] = {}

    def change(self, statement: Changing, text: str, request: Request) -> None:
        topics = self._changes.facts(statement, self.catalog, self._made)
        decision = decide(statement, self._changes.situation(text, request, self.catalog, topics=topics))
        if decision.command is not None:
            self.catalog = apply(self.catalog, decision.command)
        self._made |= _facts_of(decision.new_topic)


def initial_catalog(service_id: str) -> Catalog:
    """Every catalog begins with the stream of the processing log."""
    processing_log_source = Source(
        name=processing_log.STREAM_NAME,
        kind="STREAM",
        topic=processing_log.topic_name(service_id),
        schema=processing_log.SCHEMA,
        key_format=Format("NONE"),
        value_format=Format("JSON"),
        read_only=True,
    )
    return Catalog().with_source(processing_log_source)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise SemanticError(f"Invalid pattern: {text}. {error}") from None


def _end_of(catalog: Catalog, text: str) -> Command:
    return Command(
        unique=uuid.uuid4().hex,
        name="cluster/TerminateCluster/terminate",
        statement=text,
        message="Cluster terminated.",
        terminated=tuple(catalog.queries),
        dropped=tuple(name for name in catalog.sources if name != processing_log.STREAM_NAME),
    )


def _facts_of(request: NewTopicRequest | None) -> dict[str, TopicFacts]:
    if request is None:
        return {}
    return {request.name: TopicFacts(partitions=request.partitions, replicas=request.replicas or 1)}


def _answer(text: str, appended: Appended, warnings: Sequence[str]) -> Entity:
    command, offset = appended.command, appended.offset
    assert command is not None
    assert offset is not None
    return command_status(
        text,
        command_id=command.name,
        status="SUCCESS" if appended.applied else "QUEUED",
        message=command.message if appended.applied else "Statement written to command topic",
        query_id=command.query.query_id if command.query else None,
        sequence_number=offset,
        warnings=warnings,
    )
