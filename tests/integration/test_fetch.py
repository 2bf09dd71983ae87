"""Fetch: long polls, limits, isolation, and sessions."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import FetchResponse, FetchTopic, ForgottenTopic
from penstock.protocol.requests import decode_response
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    fetch_topic,
    produce_request,
    records_of,
    send_values,
)
from tests.integration.watching import open_files, wait_for
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import RawClient

LONG_MS = 60_000


def answer_of(client: RawClient, version: int = 12) -> FetchResponse:
    answer = decode_response(ApiKey.FETCH, version, client.recv_frame())[1]
    assert isinstance(answer, FetchResponse)
    return answer


def values(answer: FetchResponse) -> list[bytes | None]:
    return [
        record.value
        for topic in answer.responses
        for partition in topic.partitions
        for record in records_of(partition.records)
    ]


# -- Long polls ----------------------------------------------------------------------------------------------------


def park(
    client: RawClient, topic: FetchTopic, *, min_bytes: int = 1, max_wait_ms: int = LONG_MS, version: int = 12
) -> None:
    """Send a fetch that has to wait."""
    client.send(ApiKey.FETCH, version, fetch_request(topic, min_bytes=min_bytes, max_wait_ms=max_wait_ms))


def is_silent(client: RawClient, seconds: float = 0.15) -> bool:
    client.socket.settimeout(seconds)
    try:
        client.socket.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(30)
    return False


def test_a_produce_wakes_a_long_poll(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic)
    reader = connect()
    park(reader, fetch_topic(topic, {0: 0}))
    assert is_silent(reader)
    send_values(client, topic, b"wake up")
    assert values(answer_of(reader)) == [b"wake up"]


def test_one_produce_wakes_every_reader(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic)
    readers = [connect() for _ in range(20)]
    for reader in readers:
        park(reader, fetch_topic(topic, {0: 0}))
    assert is_silent(readers[-1])
    send_values(client, topic, b"all")
    assert [values(answer_of(reader)) for reader in readers] == [[b"all"]] * 20


def test_a_long_poll_waits_for_min_bytes(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    reader = connect()
    park(reader, fetch_topic(topic, {0: 0, 1: 0}), min_bytes=2500)
    send_values(client, topic, b"x" * 1000)
    assert is_silent(reader)
    send_values(client, topic, b"x" * 1000, partition=1)
    assert is_silent(reader)
    send_values(client, topic, b"x" * 1000)
    assert len(values(answer_of(reader))) == 3


def test_a_long_poll_ends_with_its_time(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"too little")
    begun = time.monotonic()
    data = fetch(client, topic, min_bytes=1 << 20, max_wait_ms=300)
    assert time.monotonic() - begun > 0.25
    assert records_of(data.records)[0].value == b"too little"


def test_min_bytes_beyond_max_bytes_does_not_wait(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"x" * 1000)
    # The connection's own patience is shorter than the wait that was asked for.
    fetch(client, topic, min_bytes=1 << 30, max_bytes=500, max_wait_ms=LONG_MS)


def test_an_error_ends_a_long_poll_at_once(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    request = fetch_request(fetch_topic(topic, {0: 0, 1: 99}), max_wait_ms=LONG_MS)
    ((first, second),) = [each.partitions for each in client.call(ApiKey.FETCH, 12, request).responses]
    assert (first.error_code, second.error_code) == (0, 1)


@pytest.mark.parametrize(("version", "code"), [(12, 3), (17, 100)])
def test_deleting_the_topic_wakes_a_long_poll(
    client: RawClient, connect: Connect, topic: str, version: int, code: int
) -> None:
    topic_id = create_topic(client, topic)
    reader = connect()
    park(reader, fetch_topic(topic_id if version >= 13 else topic, {0: 0}), version=version)
    assert is_silent(reader)
    delete_topic(client, topic)
    ((data,),) = [each.partitions for each in answer_of(reader, version).responses]
    assert data.error_code == code


def test_a_stopping_broker_answers_long_polls(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker()
    reader = connect(broker.port)
    create_topic(reader, topic)
    park(reader, fetch_topic(topic, {0: 0}))
    assert is_silent(reader)
    broker.stop()
    answer_of(reader)
    assert reader.is_closed_by_peer()


def test_readers_that_leave_while_they_wait_leave_nothing_behind(
    broker: PenstockBroker, client: RawClient, connect: Connect, topic: str
) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"here")
    before = open_files(broker)
    for _ in range(50):
        reader = connect()
        park(reader, fetch_topic(topic, {0: 0}), min_bytes=1 << 20)
        reader.close()
    wait_for(lambda: open_files(broker) <= before, "the broker to close the connections")
    send_values(client, topic, b"nobody waits")
    assert fetch(client, topic, 1).high_watermark == 2


def test_requests_behind_a_long_poll_are_answered_after_it(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic)
    reader = connect()
    park(reader, fetch_topic(topic, {0: 0}))
    park(reader, fetch_topic(topic, {0: 0}), max_wait_ms=0)
    assert is_silent(reader)
    send_values(client, topic, b"x")
    assert values(answer_of(reader)) == [b"x"]
    answer_of(reader)


def test_a_client_may_produce_behind_its_own_long_poll(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    park(client, fetch_topic(topic, {0: 0}))
    client.send(ApiKey.PRODUCE, 12, produce_request(topic, {0: batch(b"mine")}))
    assert values(answer_of(client)) == [b"mine"]
    client.recv_frame()


# -- Limits and isolation ------------------------------------------------------------------------------------------


def test_max_bytes_over_several_partitions(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=4)
    for partition in range(4):
        send_values(client, topic, b"x" * 1000, partition=partition)
    request = fetch_request(fetch_topic(topic, dict.fromkeys(range(4), 0)), max_bytes=2500)
    ((*partitions,),) = [each.partitions for each in client.call(ApiKey.FETCH, 12, request).responses]
    sizes = [len(partition.records) for partition in partitions]
    assert sizes[0] > 1000
    assert sum(sizes) <= 2500
    assert sizes[3] == 0


def test_the_first_batch_is_whole_even_beyond_every_limit(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    send_values(client, topic, b"x" * 5000, partition=1)
    send_values(client, topic, b"y", partition=1)
    request = fetch_request(fetch_topic(topic, {0: 0, 1: 0}, partition_max_bytes=10), max_bytes=10)
    ((empty, full),) = [each.partitions for each in client.call(ApiKey.FETCH, 12, request).responses]
    assert empty.records == b""
    assert [record.value for record in records_of(full.records)] == [b"x" * 5000]


def test_read_committed_sees_plain_records_and_an_empty_list_of_aborted(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"x")
    committed = fetch(client, topic, isolation_level=1)
    assert (committed.last_stable_offset, committed.aborted_transactions) == (1, [])
    assert fetch(client, topic).aborted_transactions is None


@pytest.mark.parametrize(("offset", "code"), [(-1, 1), (2, 0), (3, 1), (2**62, 1)])
def test_offsets_out_of_range(client: RawClient, topic: str, offset: int, code: int) -> None:
    create_topic(client, topic)
    send_values(client, topic, b"a", b"b")
    data = fetch(client, topic, offset)
    assert (data.error_code, data.records) == (code, b"")


def test_leader_epochs(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    wanted = fetch_topic(topic, {0: 0})
    for epoch, code in [(-1, 0), (0, 0), (1, 75)]:
        wanted.partitions[0].current_leader_epoch = epoch
        ((data,),) = [each.partitions for each in client.call(ApiKey.FETCH, 12, fetch_request(wanted)).responses]
        assert data.error_code == code


def test_a_fetch_of_several_large_partitions(client: RawClient, topic: str) -> None:
    """More than the socket takes at once, from several files."""
    create_topic(client, topic, partitions=3)
    blob = bytes(range(256)) * 3000
    for partition in range(3):
        for _ in range(8):
            send_values(client, topic, blob, partition=partition)
    request = fetch_request(fetch_topic(topic, dict.fromkeys(range(3), 0), partition_max_bytes=8 << 20))
    answer = client.call(ApiKey.FETCH, 12, request)
    assert values(answer) == [blob] * 24


# -- Sessions ------------------------------------------------------------------------------------------------------


class SessionReader:
    """A client of one fetch session that counts its epochs."""

    def __init__(self, client: RawClient, version: int) -> None:
        self.client = client
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def fetch(self, *topics: FetchTopic, forget: ForgottenTopic | None = None, **options: Any) -> FetchResponse:
        request = fetch_request(
            *topics,
            session_id=self.session_id,
            session_epoch=self.epoch,
            forgotten=[forget] if forget is not None else [],
            **options,
        )
        answer = self.client.call(ApiKey.FETCH, self.version, request)
        assert isinstance(answer, FetchResponse)
        if answer.error_code == 0:
            self.session_id = answer.session_id
            self.epoch += 1
        return answer

    def told(self, *topics: FetchTopic, **options: Any) -> list[int]:
        """The partitions that the answer mentions."""
        answer = self.fetch(*topics, **options)
        assert answer.error_code == 0
        return [partition.partition_index for topic in answer.responses for partition in topic.partitions]


@pytest.fixture(params=[7, 12, 17])
def version(request: pytest.FixtureRequest) -> int:
    assert isinstance(request.param, int)
    return request.param


@pytest.fixture
def session(client: RawClient, version: int) -> SessionReader:
    return SessionReader(client, version)


def named(client: RawClient, topic: str, version: int, partitions: int) -> Any:
    topic_id = create_topic(client, topic, partitions=partitions)
    return topic_id if version >= 13 else topic


def test_a_session_tells_only_what_is_new(
    client: RawClient, connect: Connect, session: SessionReader, topic: str, version: int
) -> None:
    name = named(client, topic, version, 3)
    assert session.told(fetch_topic(name, {0: 0, 1: 0, 2: 0})) == [0, 1, 2]
    assert session.session_id != 0
    assert session.told() == []
    send_values(connect(), topic, b"x", partition=1)
    assert session.told() == [1]
    assert session.told(fetch_topic(name, {1: 1})) == []


def test_a_session_forgets_partitions(
    client: RawClient, connect: Connect, session: SessionReader, topic: str, version: int
) -> None:
    name = named(client, topic, version, 3)
    session.told(fetch_topic(name, {0: 0, 1: 0, 2: 0}))
    forgotten = (
        ForgottenTopic(topic_id=name, partitions=[1]) if version >= 13 else ForgottenTopic(topic=name, partitions=[1])
    )
    session.told(forget=forgotten)
    other = connect()
    for partition in (0, 1):
        send_values(other, topic, b"x", partition=partition)
    assert session.told() == [0]


def test_a_session_grows(client: RawClient, connect: Connect, session: SessionReader, topic: str, version: int) -> None:
    name = named(client, topic, version, 3)
    session.told(fetch_topic(name, {0: 0}))
    assert session.told(fetch_topic(name, {2: 0})) == [2]
    send_values(connect(), topic, b"x", partition=2)
    assert session.told() == [2]


def test_errors_of_a_session(client: RawClient, session: SessionReader, topic: str, version: int) -> None:
    name = named(client, topic, version, 1)
    session.told(fetch_topic(name, {0: 0}))
    session.epoch += 5
    assert session.fetch().error_code == 71
    session.epoch -= 5
    assert session.told() == []
    session.session_id += 1
    assert session.fetch().error_code == 70


def test_a_final_fetch_ends_a_session(client: RawClient, session: SessionReader, topic: str, version: int) -> None:
    name = named(client, topic, version, 1)
    session.told(fetch_topic(name, {0: 0}))
    session_id, session.epoch = session.session_id, -1
    assert session.fetch().session_id == 0
    session.session_id, session.epoch = session_id, 2
    assert session.fetch().error_code == 70


def test_a_session_waits_and_wakes(
    client: RawClient, connect: Connect, session: SessionReader, topic: str, version: int
) -> None:
    name = named(client, topic, version, 2)
    session.told(fetch_topic(name, {0: 0, 1: 0}))
    request = fetch_request(session_id=session.session_id, session_epoch=1, max_wait_ms=LONG_MS)
    client.send(ApiKey.FETCH, version, request)
    assert is_silent(client)
    send_values(connect(), topic, b"x", partition=1)
    answer = answer_of(client, version)
    assert [partition.partition_index for each in answer.responses for partition in each.partitions] == [1]


def test_a_topic_that_comes_later_appears_in_a_session(client: RawClient, topic: str) -> None:
    session = SessionReader(client, 12)
    assert session.fetch(fetch_topic(topic, {0: 0})).responses[0].partitions[0].error_code == 3
    create_topic(client, topic)
    assert session.fetch().responses[0].partitions[0].error_code == 0
    assert session.told() == []


def test_names_and_ids_do_not_mix_in_a_session(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    session = SessionReader(client, 12)
    session.told(fetch_topic(topic, {0: 0}))
    session.version = 13
    assert session.fetch().error_code == 106
    session.version = 12
    assert session.told() == []


def test_a_session_of_a_thousand_partitions(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic, partitions=1000)
    session = SessionReader(client, 12)
    assert len(session.told(fetch_topic(topic, dict.fromkeys(range(1000), 0)))) == 1000
    writer = connect()
    for partition in (3, 997):
        send_values(writer, topic, b"x", partition=partition)
    assert sorted(session.told()) == [3, 997]
    positions = dict.fromkeys((3, 997), 1)
    assert session.told(fetch_topic(topic, positions)) == []
    for _ in range(20):
        assert session.told() == []


def test_a_small_max_bytes_starves_no_partition_of_a_session(client: RawClient, connect: Connect, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    writer = connect()
    for partition in range(3):
        for _ in range(4):
            send_values(writer, topic, b"x" * 1000, partition=partition)
    session = SessionReader(client, 12)
    positions = dict.fromkeys(range(3), 0)
    told = session.fetch(fetch_topic(topic, positions), max_bytes=1200)
    served: list[int] = []
    for _ in range(12):
        for data in (partition for each in told.responses for partition in each.partitions if partition.records):
            served.append(data.partition_index)
            positions[data.partition_index] = records_of(data.records)[-1].offset + 1
        told = session.fetch(fetch_topic(topic, positions), max_bytes=1200)
    assert set(served[:3]) == {0, 1, 2}
    assert positions == dict.fromkeys(range(3), 4)


def test_sessions_are_bounded(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    broker = start_broker(max_incremental_fetch_session_cache_slots="2")
    client = connect(broker.port)
    create_topic(client, topic)
    ids = []
    for _ in range(4):
        session = SessionReader(connect(broker.port), 12)
        session.told(fetch_topic(topic, {0: 0}))
        ids.append(session.session_id)
    assert [each != 0 for each in ids] == [True, True, False, False]
