"""One group of the classic protocol: its members, its generation, its state.

A `ClassicGroup` is soft state: it lives in memory and holds who waits for what. Its hard part (generation, protocol,
leader, members with their assignments) is in the log and comes back as `GroupMetadataValue`; the group is built from
that when a partition is loaded. In between, a generation exists in memory only until its leader's assignment is
committed, as in Kafka: a coordinator that fails over forgets a rebalance that is under way, and its members join again.

The methods here keep the group consistent with itself and decide nothing; rules are in the modules beside this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.answers import Answer
from penstock.coordinator.group.member import Member, Protocols
from penstock.coordinator.group.states import TRANSITIONS, GroupState
from penstock.coordinator.group.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from penstock.coordinator.records.group_records import GroupMetadataValue
from penstock.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.sync_group import SyncGroupResponse

NO_GENERATION = -1


class ClassicGroup:
    """See the module. Members are kept in the order in which they came."""

    __slots__ = (
        "awaiting_join_count",
        "generation",
        "group_id",
        "leader",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol",
        "protocol_counts",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "storing_generation",
        "topics",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join: set[str] = set()
        """Ids that were handed out and have not joined yet (KIP-394)."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not asked for their assignment."""
        self.awaiting_join_count = 0
        self.protocol_counts: Counter[str] = Counter()
        self.topics: frozenset[str] | None = None
        self.new_member_added = False
        """Somebody came during the initial delay, which is therefore prolonged."""
        self.storing_generation = NO_GENERATION
        """The generation whose assignment is on its way into the log."""

    def load(self, stored: GroupMetadataValue) -> None:
        """Become what the log says of a group that nobody has touched yet."""
        assert not self.members, f"{self.group_id} is in use"
        self.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        self.state_timestamp_ms = stored.current_state_timestamp_ms
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type or None
        self.protocol = stored.protocol
        for member in stored.members:
            self._put(Member.from_metadata(member, stored.protocol))
        self.leader = stored.leader if stored.leader in self.members else next(iter(self.members), None)
        self.topics = self._subscribed_topics()

    def to_metadata(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        protocol = self.protocol
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader,
            current_state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                member.to_metadata(protocol or "", assignments.get(member.member_id, b""))
                for member in self.members.values()
            ),
        )

    def assignments(self) -> dict[str, bytes]:
        return {member.member_id: member.assignment for member in self.members.values()}

    # -- State -----------------------------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state.value} to {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def start_generation(self, now_ms: int) -> None:
        """The join phase is over: choose the protocol, and wait for the assignment or for new members."""
        self.generation += 1
        self.protocol = self.choose_protocol() if self.members else None
        self.topics = self._subscribed_topics()
        self.pending_sync.clear()
        self.new_member_added = False
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    # -- Members ---------------------------------------------------------------------------------------------------

    def add(self, member: Member, protocol_type: str, answer: Answer[JoinGroupResponse]) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self._put(member)
        self.park_join(member, answer)
        self.pending_join.discard(member.member_id)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Forget a member, or an id that was only handed out. Its answers are the caller's to give first."""
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._discount(member)
        if member.awaiting_join is not None:
            self.awaiting_join_count -= 1
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        self._discount(member)
        self.protocol_counts.update(protocols.keys())
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace(self, old: Member, new: Member) -> None:
        """Put `new` in the place of a static member that is the same under another id."""
        self.members = {
            (new.member_id if key == old.member_id else key): (new if key == old.member_id else member)
            for key, member in self.members.items()
        }
        self._discount(old)
        self.protocol_counts.update(new.protocols.keys())
        if old.awaiting_join is not None:
            self.awaiting_join_count -= 1
        if new.awaiting_join is not None:
            self.awaiting_join_count += 1
        if old.member_id in self.pending_sync:
            self.pending_sync.discard(old.member_id)
            self.pending_sync.add(new.member_id)
        if self.leader == old.member_id:
            self.leader = new.member_id
        assert new.group_instance_id is not None
        self.static_members[new.group_instance_id] = new.member_id

    def check_member(self, member_id: str, group_instance_id: str | None) -> Member:
        """The member a request speaks for; an instance id that another member holds now fences it."""
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member of {self.group_id} is {group_instance_id}")
            if holder != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID, f"{group_instance_id} of {self.group_id} is held by another member"
                )
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is no member of {self.group_id}")
        return member

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.protocol_counts.update(member.protocols.keys())
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def _discount(self, member: Member) -> None:
        counts = self.protocol_counts
        for name in member.protocols:
            counts[name] -= 1
            if not counts[name]:
                del counts[name]

    # -- Who waits -------------------------------------------------------------------------------------------------

    def park_join(self, member: Member, answer: Answer[JoinGroupResponse]) -> None:
        """Let a member wait for the next generation. A request that it sent before has been given up by it."""
        self.answer_join(member, JoinGroupResponse(member_id=member.member_id, error_code=_SUPERSEDED))
        member.awaiting_join = answer
        self.awaiting_join_count += 1

    def answer_join(self, member: Member, response: JoinGroupResponse) -> bool:
        answer = member.awaiting_join
        if answer is None:
            return False
        member.awaiting_join = None
        self.awaiting_join_count -= 1
        answer.complete(response)
        return True

    def park_sync(self, member: Member, answer: Answer[SyncGroupResponse]) -> None:
        self.answer_sync(member, SyncGroupResponse(error_code=_SUPERSEDED))
        member.awaiting_sync = answer

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        answer = member.awaiting_sync
        if answer is None:
            return False
        member.awaiting_sync = None
        answer.complete(response)
        return True

    def answer_all(self, code: ErrorCode) -> None:
        """Give everybody who waits the same error."""
        for member in self.members.values():
            self.answer_join(member, JoinGroupResponse(member_id=member.member_id, error_code=code))
            self.answer_sync(member, SyncGroupResponse(error_code=code))

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_join

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is one who has joined; False when nobody has."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the slowest member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- Protocols ---------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether somebody with these protocols could be a member."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        return self.protocol_type == protocol_type and any(
            self.protocol_counts[name] == len(self.members) for name in protocols
        )

    def choose_protocol(self) -> str:
        """Of the protocols that all members have, the one most of them like best."""
        candidates = {name for name, count in self.protocol_counts.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def joined_members(self) -> list[JoinGroupResponseMember]:
        """What the leader needs for its assignment."""
        protocol = self.protocol or ""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.protocols.get(protocol, b""),
            )
            for member in self.members.values()
        ]

    def is_subscribed_to(self, topic: str) -> bool:
        """A consumer group whose topics are unknown counts as subscribed."""
        return self.is_consumer_group if self.topics is None else topic in self.topics

    def _subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        protocol = self.protocol
        return subscribed_topics(
            self.group_id, (member.protocols.get(protocol, b"") for member in self.members.values())
        )


_SUPERSEDED = ErrorCode.REBALANCE_IN_PROGRESS
