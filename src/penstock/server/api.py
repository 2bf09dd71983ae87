"""What a handler is: an API's declaration, the request it gets, and the broker parts it may use.

An API is either *raw* (its handler reads the frame and writes the answer by itself, for the hot ones) or made of
*messages* (the dispatcher decodes the request and encodes what the handler returns). A handler that has to wait returns
a coroutine; its answer still leaves in the order of the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.topic import TopicConfig
from penstock.base.errors import ErrorCode
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Tasks
from penstock.controller.controller import Controller
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.metadata.image import ClusterImage
from penstock.metadata.store import MetadataStore
from penstock.protocol.apis import APIS, ApiKey
from penstock.replication.manager import ReplicaManager
from penstock.security.authorizer import Authorizer, Requirement
from penstock.server.coordinators import Coordinators
from penstock.server.fetch_sessions import FetchSessions
from penstock.server.output import Answer
from penstock.server.producer_ids import ProducerIds
from penstock.server.session import Session
from penstock.server.transactions import TransactionParts
from penstock.storage.manager.manager import LogManager


class Request:
    """One request while it is handled. `frame` is the session's memory: it is gone once the handler has returned."""

    __slots__ = ("api_version", "client_id", "correlation_id", "frame", "position", "session", "throttle_ms")

    def __init__(
        self,
        session: Session,
        frame: memoryview,
        position: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        throttle_ms: int,
    ) -> None:
        self.session = session
        self.frame = frame
        self.position = position
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.throttle_ms = throttle_ms

    def log_fields(self) -> dict[str, object]:
        """Who asked, for a line in the log."""
        host, port = self.session.peer
        return {"client_id": self.client_id, "client": f"{host}:{port}"}


@dataclass(slots=True, kw_only=True)
class Context:
    """The parts of the broker that handlers work with."""

    node_id: int
    config: BrokerConfig
    store: MetadataStore
    replicas: ReplicaManager
    logs: LogManager
    controller: Controller
    coordinators: Coordinators
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    authorizer: Authorizer
    clock: Clock
    tasks: Tasks
    metrics: Metrics
    apis: Mapping[int, Api]

    @property
    def image(self) -> ClusterImage:
        return self.store.image

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups

    @property
    def transactions(self) -> TransactionParts:
        return self.coordinators.transactions

    def topic_config(self, topic: str) -> TopicConfig:
        state = self.image.topics.get(topic)
        return TopicConfig(self.config, state.configs if state is not None else {})


RawHandler = Callable[[Context, Request], Answer]
MessageHandler = Callable[[Context, Request, Any], Any | Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API as this broker serves it."""

    key: ApiKey
    versions: range
    requirements: Sequence[Requirement]
    handle_raw: RawHandler | None = None
    handle: MessageHandler | None = None
    advertised_from: int | None = None
    """A lower bound to announce although it is refused, where clients read features from it."""
    error_response: Callable[[ErrorCode], Any] | None = None
    """How this API says that the whole request failed; None when its answer has a top-level `error_code`."""

    @property
    def name(self) -> str:
        return APIS[self.key].name
