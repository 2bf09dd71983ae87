"""The consumer's half of fetch sessions, held against a broker that remembers."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.consumer.fetching.session import FetchSession, FetchTarget, SessionFetch

P = [TopicPartition("t", index) for index in range(4)]
ID = UUID(int=7)


def target(offset: int, topic_id: UUID = ID) -> FetchTarget:
    return FetchTarget(topic_id, offset, 1, 100)


class RememberingBroker:
    """Keeps a session as a broker does: what it would read is what the client last wanted."""

    def __init__(self) -> None:
        self.session = 0
        self.epoch = 0
        self.partitions: dict[TopicPartition, FetchTarget] = {}

    def fetch(self, request: SessionFetch) -> tuple[int, int]:
        if request.is_full:
            self.session += 1
            self.epoch = 1
            self.partitions = dict(request.send)
            return 0, self.session
        if request.session_id != self.session:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0
        if request.epoch != self.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0
        for partition in request.forget:
            self.partitions.pop(partition, None)
        self.partitions.update(request.send)
        self.epoch += 1
        return 0, self.session


def test_after_a_full_fetch_only_changes_are_sent() -> None:
    session, broker = FetchSession(), RememberingBroker()
    first = session.plan({P[0]: target(0), P[1]: target(0)}, uses_ids=True)
    assert first.is_full
    assert session.answered(first, *broker.fetch(first))
    second = session.plan({P[0]: target(5), P[1]: target(0)}, uses_ids=True)
    assert (second.epoch, dict(second.send), dict(second.forget)) == (1, {P[0]: target(5)}, {})
    assert session.answered(second, *broker.fetch(second))
    third = session.plan({P[1]: target(0), P[2]: target(0)}, uses_ids=True)
    assert (third.epoch, dict(third.send), dict(third.forget)) == (2, {P[2]: target(0)}, {P[0]: ID})


def test_a_broker_without_sessions_gets_full_fetches() -> None:
    session = FetchSession()
    for _ in range(3):
        fetch = session.plan({P[0]: target(0)}, uses_ids=True)
        assert fetch.is_full
        assert fetch.send
        assert session.answered(fetch, 0, 0)
    assert session.closing() is None


def test_a_forgotten_session_begins_again() -> None:
    session, broker = FetchSession(), RememberingBroker()
    fetch = session.plan({P[0]: target(0)}, uses_ids=True)
    session.answered(fetch, *broker.fetch(fetch))
    fetch = session.plan({P[0]: target(0)}, uses_ids=True)
    assert not session.answered(fetch, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    fetch = session.plan({P[0]: target(0)}, uses_ids=True)
    assert (fetch.session_id, fetch.epoch, dict(fetch.send)) == (0, 0, {P[0]: target(0)})


def test_names_and_ids_do_not_share_a_session() -> None:
    session, broker = FetchSession(), RememberingBroker()
    fetch = session.plan({P[0]: target(0)}, uses_ids=True)
    session.answered(fetch, *broker.fetch(fetch))
    assert session.plan({P[0]: target(0, UUID(int=0))}, uses_ids=False).is_full


def test_a_topic_made_anew_replaces_the_old_one() -> None:
    session, broker = FetchSession(), RememberingBroker()
    fetch = session.plan({P[0]: target(0)}, uses_ids=True)
    session.answered(fetch, *broker.fetch(fetch))
    new = target(0, UUID(int=8))
    fetch = session.plan({P[0]: new}, uses_ids=True)
    assert dict(fetch.forget) == {P[0]: ID}
    assert dict(fetch.send) == {P[0]: new}


_WANTED = st.dictionaries(st.sampled_from(P), st.integers(0, 3).map(target), min_size=1)
_ROUNDS = st.lists(
    st.tuples(_WANTED, st.sampled_from(["answered", "lost before", "lost after", "evicted"])), max_size=20
)


@given(_ROUNDS)
def test_the_broker_always_reads_what_is_wanted(rounds: list[tuple[dict[TopicPartition, FetchTarget], str]]) -> None:
    session, broker = FetchSession(), RememberingBroker()
    for wanted, fate in rounds:
        fetch = session.plan(wanted, uses_ids=True)
        if fate == "lost before":
            session.failed()
            continue
        if fate == "evicted":
            broker.session += 1
        code, session_id = broker.fetch(fetch)
        if fate == "lost after":
            session.failed()
        elif session.answered(fetch, code, session_id):
            assert broker.partitions == wanted
