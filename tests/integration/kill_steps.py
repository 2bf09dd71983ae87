"""Requests that a broker may die under, and how to see afterwards whether they were carried out.

A `Step` prepares what its request needs, sends it without waiting, and after the broker's death and restart tells
whether the request is done. Half done is a failed assertion, and so is an answered request that is not done.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.requests import decode_response
from tests.support.raw_client import ConnectionEndedError, RawClient

PATIENCE_S = 30.0

COME_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""A broker that has just started may say these."""

Request = tuple[ApiKey, int, object]


def error_codes(message: Any) -> list[int]:
    """Every error code anywhere in a message."""
    codes: list[int] = []
    for name in type(message).__slots__:
        value = getattr(message, name)
        if name in ("error_code", "partition_error_code"):
            codes.append(value)
        elif isinstance(value, list):
            for each in value:
                if hasattr(type(each), "__slots__"):
                    codes += error_codes(each)
    return codes


def ask(client: RawClient, api_key: ApiKey, version: int, message: object) -> Any:
    """The answer, asked for again while the broker is not ready to give one."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = client.call(api_key, version, message)
        if not COME_AGAIN.intersection(error_codes(answer)) or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def ask_well(client: RawClient, api_key: ApiKey, version: int, message: object) -> Any:
    """The answer, which must be without an error."""
    answer = ask(client, api_key, version, message)
    assert not any(error_codes(answer)), answer
    return answer


def find_coordinators(client: RawClient) -> None:
    """Asking for them makes the topics they keep their state in."""
    for kind in (0, 1):
        ask_well(client, ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["any"], key_type=kind))


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


class Step(ABC):
    name: ClassVar[str]

    def __init__(self, number: str) -> None:
        self.id = f"{self.name}-{number}"
        """For groups, topics and transactional ids of this step's own."""
        self.answer: Any = None
        self._client: RawClient | None = None
        self._request: Request | None = None

    def __repr__(self) -> str:
        return self.id

    # What a step is made of.

    @abstractmethod
    def prepare(self, client: RawClient) -> Request:
        """Everything up to the request, and the request."""

    @abstractmethod
    def is_done(self, client: RawClient) -> bool:
        """Whether it was carried out, wholly or not at all: everything between is a failed assertion."""

    def go_on(  # noqa: B027 - for many steps there is nothing next
        self, client: RawClient, done: bool
    ) -> None:
        """What a client does next must work, whichever it was."""

    # How it is driven.

    def fire(self) -> None:
        assert self._client is not None
        assert self._request is not None
        self._client.send(*self._request)

    def get_ready(self, connect: Callable[[], RawClient]) -> None:
        self._client = connect()
        self._request = self.prepare(self._client)

    def take_answer(self) -> bool:
        """Read what the broker said, if it said something."""
        assert self._client is not None
        assert self._request is not None
        api_key, version, _ = self._request
        try:
            frame = self._client.recv_frame()
        except (ConnectionEndedError, ConnectionResetError):
            return False
        self.answer = decode_response(api_key, version, frame)[1]
        assert not any(error_codes(self.answer)), (self, self.answer)
        return True

    def judge(self, client: RawClient) -> bool:
        done = self.is_done(client)
        assert done or self.answer is None, f"{self}: answered, but not done: {self.answer}"
        self.go_on(client, done)
        return done


def committed_offsets(
    client: RawClient, group: str, topic: str, partitions: int, *, require_stable: bool = False
) -> list[tuple[int, str | None, int]]:
    """(offset, metadata, error) of each partition."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(partitions)))
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=require_stable
    )
    answer = ask(client, ApiKey.OFFSET_FETCH, 9, request)
    (found,) = answer.groups
    assert found.error_code == 0, answer
    (of_topic,) = found.topics
    ordered = sorted(of_topic.partitions, key=lambda each: each.partition_index)
    assert [each.partition_index for each in ordered] == list(range(partitions))
    return [(each.committed_offset, each.metadata, each.error_code) for each in ordered]
