"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.coordinator.group.answers import Answer
from penstock.coordinator.records.group_records import MemberMetadata
from penstock.coordinator.runtime.shard import Result
from penstock.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

Protocols = dict[str, bytes]
"""A member's protocols with its metadata for each, in the order of its preference."""


def protocols_of(requested: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """The first of several with the same name counts."""
    protocols: Protocols = {}
    for protocol in requested:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return protocols


class Member:
    """What the group knows of a member. Everything but the assignment comes from its own JoinGroup."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "expire_session",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_key",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Answer[JoinGroupResponse] | None = None
        self.awaiting_sync: Answer[SyncGroupResponse] | None = None
        self.is_new = False
        """Has not had an answer to its first JoinGroup: it cannot send heartbeats yet."""
        # The timer of the session, made once because every heartbeat sets it anew.
        self.session_key = ""
        self.expire_session: Callable[[Any], Result[Any]] | None = None

    @classmethod
    def from_metadata(cls, stored: MemberMetadata, protocol: str | None) -> Member:
        """A member as the log remembers it: only the protocol that was chosen is known."""
        return cls(
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            session_timeout_ms=stored.session_timeout_ms,
            protocols={protocol or "": stored.subscription},
            assignment=stored.assignment,
        )

    def with_id(self, member_id: str) -> Member:
        """The same member under another id; whoever waits stays with the old one."""
        return Member(
            member_id=member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    def to_metadata(self, protocol: str, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.protocols.get(protocol, b""),
            assignment=assignment,
        )

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def needs_no_heartbeat(self) -> bool:
        """A member that is parked is known to be there, unless nobody ever heard of it again after its first join."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def matches(self, protocols: Protocols) -> bool:
        """Whether a JoinGroup with these protocols would change nothing."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: set[str]) -> str:
        """The candidate that this member likes best; it supports all of them."""
        return next(name for name in self.protocols if name in candidates)
