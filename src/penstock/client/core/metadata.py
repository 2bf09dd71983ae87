"""What the cluster looks like, kept fresh in the background.

One task refreshes: soon after somebody asked (`request_update`, at most once in `retry.backoff.ms`, longer after
failures), at once for a topic that is new here, and in any case every `metadata.max.age.ms`. Each answer gives a new
immutable `snapshot`, which any thread may read; everything else belongs to the loop.

Who needs one topic waits for it with `topic`; who must see what is true now calls `update`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain
from typing import Any, Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, common_keys, consumer_keys, producer_keys
from penstock.client.core.snapshot import NO_CLUSTER, is_incomplete, merge, with_leader, without
from penstock.client.core.types import ClusterSnapshot, Node, TopicInfo
from penstock.client.core.waiting import within
from penstock.client.core.wanted import Question, Wanted
from penstock.client.errors import ClientClosed, KafkaTimeout, UnknownTopicOrPartition, error_for, is_retriable
from penstock.network.backoff import backoff_ms
from penstock.network.settings import NetworkPorts
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

log = logging.getLogger(__name__)

Ask = Callable[[MetadataRequest], Awaitable[MetadataResponse]]
"""One question to whichever node will answer; tries all of them. KafkaError when none did."""

OnChange = Callable[[ClusterSnapshot], None]

_IDLE_S: Final = 3600.0
"""How long the task sleeps while nobody wants anything; whoever does wakes it."""
_UNKNOWN_TELLING: Final = 3
"""So many answers in a row must have said that a topic does not exist before a warning does."""


def no_such_topic(name: str, limit_ms: float) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(
        f"topic {name} does not exist (looked for {limit_ms:.0f} ms): create it, or check its name"
    )


class Metadata:
    def __init__(self, config: ClientConfig, ports: NetworkPorts, ask: Ask) -> None:
        self.snapshot: ClusterSnapshot = NO_CLUSTER
        self.why_waiting: Callable[[], str] = str
        """What holds up a question that is under way, for the errors of those who give up before it ends."""
        self._config = config
        self._ports = ports
        self._ask = ask
        self._auto_create = config.get(producer_keys.ENABLE_AUTO_TOPIC_CREATION, False) or config.get(
            consumer_keys.ALLOW_AUTO_CREATE_TOPICS, False
        )
        self._wanted = Wanted(config.get(producer_keys.METADATA_MAX_IDLE_MS, 0) / 1000)
        self._is_requested = False
        self._waiters: list[asyncio.Future[ClusterSnapshot]] = []
        self._topic_waiters: dict[str, list[asyncio.Future[TopicInfo]]] = {}
        self._callbacks: list[OnChange] = []
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._failure: KafkaError | None = None
        self._unknown: Counter[str] = Counter()
        """How often in a row an answer said of a topic that it does not exist."""
        self._tried_at = float("-inf")
        self._updated_at = float("-inf")

    # What to know.

    def want(self, topics: Iterable[str]) -> None:
        """Keep these topics fresh. A producer's are forgotten when nobody wants them for `metadata.max.idle.ms`."""
        if self._wanted.add(topics, self._ports.clock.monotonic()):
            self._wake_up()

    def forget(self, topics: Iterable[str]) -> None:
        self._wanted.remove(topics)
        if not self._wanted.all:
            self._replace(without(self.snapshot, self.snapshot.topics.keys() - self._wanted.topics))

    def want_only(self, topics: Iterable[str]) -> None:
        """Exactly these topics, as a changed subscription says."""
        chosen = set(topics)
        self.want(chosen)
        self.forget([topic for topic in self._wanted.topics if topic not in chosen])

    def want_all(self, on: bool) -> None:
        """Every topic of the cluster, for subscriptions by pattern."""
        if on and not self._wanted.all:
            self.request_update("all topics are wanted")
        self._wanted.all = on

    def on_change(self, callback: OnChange) -> None:
        """Call with each new snapshot, on the loop."""
        self._callbacks.append(callback)

    @property
    def age_ms(self) -> float:
        """How long ago the last answer came; 0 before the first one."""
        return (self._ports.clock.monotonic() - self._updated_at) * 1000 if self.snapshot.version else 0.0

    # Refreshing.

    def request_update(self, reason: str) -> None:
        """Refresh soon. Asking often costs nothing: requests are joined, and pauses kept."""
        if not self._is_requested:
            log.debug("metadata will be refreshed: %s", reason)
        self._is_requested = True
        self._wake_up()

    async def update(self, timeout_ms: float | None = None) -> ClusterSnapshot:
        """Refresh now; the snapshot made from an answer to a question asked after this call."""
        waiter: asyncio.Future[ClusterSnapshot] = self._ports.tasks.future()
        self._check_running()
        self._waiters.append(waiter)
        self._is_requested = True
        self._wake_up()
        limit_ms = self._default_timeout_ms if timeout_ms is None else timeout_ms
        try:
            return await within(self._ports, limit_ms, waiter)
        except TimeoutError:
            raise KafkaTimeout(f"no metadata came within {limit_ms:.0f} ms{self._last_failure()}") from None
        finally:
            # One that gave up is not kept until the cluster can be reached again.
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def topic(self, name: str, timeout_ms: float | None = None) -> TopicInfo:
        """The topic, waited for until it is known with its partitions."""
        found = self.snapshot.topics.get(name)
        self.want((name,))
        if found is not None and found.partitions:
            return found
        self._check_running()
        limit_ms = self._default_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._ports.clock.monotonic() + limit_ms / 1000
        self._wanted.ask_again(name)
        error = ErrorCode.NONE
        while (found := await self._next_answer(name, deadline)) is not None:
            if found.partitions:
                return found
            error = found.error
            if error is not ErrorCode.NONE and not error.retriable:
                raise error_for(error, f"topic {name}: {error_for(error)}")
            # In case it was forgotten meanwhile.
            self.want((name,))
            self._is_requested = True
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise no_such_topic(name, limit_ms)
        why = f": {error_for(error)}" if error else self._last_failure()
        raise KafkaTimeout(f"no metadata of topic {name} came within {limit_ms:.0f} ms{why}")

    async def _next_answer(self, name: str, deadline: float) -> TopicInfo | None:
        """What the next answer says of the topic; None when the time is over."""
        self._wake_up()
        waiter: asyncio.Future[TopicInfo] = self._ports.tasks.future()
        self._topic_waiters.setdefault(name, []).append(waiter)
        remaining_ms = (deadline - self._ports.clock.monotonic()) * 1000
        try:
            return await within(self._ports, remaining_ms, waiter)
        except TimeoutError:
            return None
        finally:
            self._give_up(name, waiter)

    def _give_up(self, name: str, waiter: asyncio.Future[TopicInfo]) -> None:
        """Forget one who no longer waits."""
        waiting = self._topic_waiters.get(name, [])
        if waiter in waiting:
            waiting.remove(waiter)
        if not waiting:
            self._topic_waiters.pop(name, None)

    @property
    def _default_timeout_ms(self) -> float:
        return self._config[producer_keys.DEFAULT_API_TIMEOUT_MS]

    # Hints.

    def leader_changed(self, tp: TopicPartition, leader: int, leader_epoch: int, endpoints: Iterable[Any] = ()) -> None:
        """A broker answered who leads instead of it (KIP-951). `endpoints` have node_id, host, port, rack."""
        nodes = (Node(each.node_id, each.host, each.port, each.rack) for each in endpoints)
        if leader >= 0:
            self._replace(with_leader(self.snapshot, tp, leader, leader_epoch, nodes))

    # The task.

    def start(self) -> None:
        self._task = self._ports.tasks.spawn(self._run(), name="metadata")

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._fail_waiters(ClientClosed("the client was closed"))

    def _check_running(self) -> None:
        if self._task is None or self._task.done():
            raise ClientClosed("the client was closed: make a new one")

    async def _run(self) -> None:
        while True:
            await self._sleep_until_due()
            await self._refresh()

    async def _sleep_until_due(self) -> None:
        while (delay_s := self._delay_s()) > 0:
            self._wake = self._ports.tasks.future()
            try:
                await within(self._ports, delay_s * 1000, self._wake)
            except TimeoutError:
                pass
            finally:
                self._wake = None

    def _delay_s(self) -> float:
        """How long to wait before the next question. A topic that is new is asked for at once."""
        now = self._ports.clock.monotonic()
        config = self._config
        pause_ms = backoff_ms(
            config[common_keys.RETRY_BACKOFF_MS],
            config[common_keys.RETRY_BACKOFF_MAX_MS],
            max(self._failures, 1),
            self._ports.rng,
        )
        if self._wanted.new and not self._failures:
            return 0.0
        if self._is_requested or self._wanted.new or self._failures:
            return self._tried_at + pause_ms / 1000 - now
        if not self._wanted.is_anything and not self.snapshot.version:
            return _IDLE_S
        return self._updated_at + config[common_keys.METADATA_MAX_AGE_MS] / 1000 - now

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _refresh(self) -> None:
        self._tried_at = self._ports.clock.monotonic()
        question = self._wanted.next_question(self._tried_at, full=self._is_requested or self._failures > 0)
        self._is_requested = False
        waiters: list[asyncio.Future[ClusterSnapshot]] = []
        if not question.is_partial:
            waiters, self._waiters = self._waiters, []
        try:
            answer = await self._ask(self._request(question))
            if answer.error_code:
                raise error_for(answer.error_code)
        except KafkaError as error:
            self._waiters += waiters
            self._failed(error)
        except asyncio.CancelledError:
            self._waiters += waiters
            raise
        else:
            self._succeeded(answer, question, waiters)

    def _request(self, question: Question) -> MetadataRequest:
        if question.is_all:
            return MetadataRequest(topics=None, allow_auto_topic_creation=False)
        named = [MetadataRequestTopic(name=name) for name in sorted(question.topics)]
        return MetadataRequest(topics=named, allow_auto_topic_creation=self._auto_create)

    def _failed(self, error: KafkaError) -> None:
        self._failures += 1
        self._failure = error
        log.log(logging.WARNING if self._failures == 1 else logging.DEBUG, "no metadata: %s", error)
        if not is_retriable(error):
            # To wait longer will not help: wrong credentials, no common version.
            self._fail_waiters(error)

    def _last_failure(self) -> str:
        if self._failures and self._failure is not None:
            return f": {self._failure}"
        waits = self.why_waiting()
        return f": {waits}" if waits else ""

    def _succeeded(
        self, answer: MetadataResponse, question: Question, waiters: list[asyncio.Future[ClusterSnapshot]]
    ) -> None:
        self._failures = 0
        self._updated_at = self._ports.clock.monotonic()
        keep = self.snapshot.topics.keys() - question.topics if question.is_partial else ()
        self._replace(merge(self.snapshot, answer, keep=keep))
        if is_incomplete(answer):
            self.request_update("a topic or a leader was missing")
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(self.snapshot)
        self._tell_topics(answer, question)
        self._warn_of_unknown(answer)

    def _warn_of_unknown(self, answer: MetadataResponse) -> None:
        """Once per topic, and not of one that is just being created."""
        for topic in answer.topics:
            if topic.name is None or topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._unknown.pop(topic.name or "", None)
                continue
            self._unknown[topic.name] += 1
            if self._unknown[topic.name] == _UNKNOWN_TELLING:
                log.warning("topic %s does not exist: create it, or check its name", topic.name)

    def _tell_topics(self, answer: MetadataResponse, question: Question) -> None:
        """Whoever waits for a topic hears what this answer said of it; of all topics, those left out do not exist."""
        named = [topic.name for topic in answer.topics if topic.name is not None]
        for name in list(self._topic_waiters) if question.is_all else named:
            told = self.snapshot.topics.get(name) or TopicInfo(name=name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for waiter in self._topic_waiters.pop(name, ()):
                if not waiter.done():
                    waiter.set_result(told)

    def _replace(self, snapshot: ClusterSnapshot) -> None:
        if snapshot is self.snapshot:
            return
        self.snapshot = snapshot
        for callback in self._callbacks:
            try:
                callback(snapshot)
            except Exception:
                # Whatever one listener raises, metadata must go on being refreshed and the others must hear of it.
                log.exception("a listener of metadata failed")

    def _fail_waiters(self, error: KafkaError) -> None:
        waiters: list[asyncio.Future[Any]] = [*self._waiters, *chain.from_iterable(self._topic_waiters.values())]
        self._waiters, self._topic_waiters = [], {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
