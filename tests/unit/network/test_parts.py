"""The plain parts: matching answers, choosing versions, waiting, encoding."""

from __future__ import annotations

import itertools
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.network import errors
from penstock.network.address import Address
from penstock.network.backoff import JITTER, backoff_ms
from penstock.network.deadlines import DeadlineTimer
from penstock.network.encoding import EncodedBody, body_position, encode
from penstock.network.errors import Disconnected, LocalError, NetworkError, RemoteError, UnsupportedVersion
from penstock.network.in_flight import CORRELATION_ID_MAX, InFlight, PendingRequest, WrongAnswer
from penstock.network.versions import VersionTable
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.codec import encode as encode_message
from penstock.protocol.errors import DecodeError
from penstock.protocol.messages.api_versions import ApiVersion
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.requests import encode_request, encode_response
from tests.unit.network.fakes import ADDRESS, FakeTime

# Matching.


def answer(correlation_id: int) -> bytes:
    return struct.pack(">i", correlation_id)


def pending(in_flight: InFlight, deadline: float = 0.0) -> PendingRequest:
    future: Any = None
    request = PendingRequest(ApiKey.METADATA, 9, in_flight.new_correlation_id(), deadline, None, future)
    in_flight.add(request)
    return request


@given(st.lists(st.booleans(), max_size=60), st.sampled_from([0, CORRELATION_ID_MAX - 3]))
def test_answers_match_in_order(sends: list[bool], first_id: int) -> None:
    in_flight = InFlight(first_id)
    model: list[PendingRequest] = []
    for sends_now in sends:
        if sends_now or not model:
            model.append(pending(in_flight))
        else:
            expected = model.pop(0)
            assert in_flight.match(answer(expected.correlation_id)) is expected
            in_flight.finish_oldest()
        assert list(in_flight) == model
        assert all(0 <= request.correlation_id <= CORRELATION_ID_MAX for request in model)


@given(st.integers(1, 5), st.integers(-(2**31), 2**31 - 1))
def test_any_other_id_is_refused(waiting: int, correlation_id: int) -> None:
    in_flight = InFlight()
    for _ in range(waiting):
        pending(in_flight)
    if correlation_id == 0:
        in_flight.match(answer(correlation_id))
        return
    with pytest.raises(WrongAnswer, match=f"{correlation_id} came where 0 was expected"):
        in_flight.match(answer(correlation_id))
    assert len(in_flight) == waiting


def test_an_answer_to_nothing_and_one_that_is_too_short() -> None:
    in_flight = InFlight()
    with pytest.raises(WrongAnswer, match="nothing was asked"):
        in_flight.match(answer(1))
    with pytest.raises(WrongAnswer, match="shorter"):
        in_flight.match(b"\x00\x00\x00")


def test_the_earliest_deadline_need_not_be_the_first() -> None:
    in_flight = InFlight()
    assert in_flight.earliest_deadline() is None
    for deadline in (5.0, 3.0, 4.0):
        pending(in_flight, deadline)
    assert in_flight.earliest_deadline() == 3.0
    assert len(in_flight.take_all()) == 3
    assert len(in_flight) == 0


# Versions.

ranges = st.tuples(st.integers(0, 12), st.integers(0, 14))


@given(ranges, st.integers(0, 14), st.integers(0, 14))
def test_the_highest_version_of_both_in_the_range(served: tuple[int, int], at_least: int, at_most: int) -> None:
    table = VersionTable(ADDRESS, [ApiVersion(api_key=ApiKey.FETCH, min_version=served[0], max_version=served[1])])
    fetch = APIS[ApiKey.FETCH]
    common = [
        version
        for version in range(fetch.lowest_version, fetch.highest_version + 1)
        if served[0] <= version <= served[1] and at_least <= version <= at_most
    ]
    if common:
        assert table.pick(ApiKey.FETCH, at_least=at_least, at_most=at_most) == max(common)
    else:
        with pytest.raises(UnsupportedVersion, match=r"broker\.example:9092: the broker serves Fetch"):
            table.pick(ApiKey.FETCH, at_least=at_least, at_most=at_most)


def test_an_api_that_one_side_does_not_know() -> None:
    table = VersionTable(ADDRESS, [ApiVersion(api_key=999, min_version=0, max_version=1)])
    assert table.best == {}
    assert table.served(999) == (0, 1)
    with pytest.raises(UnsupportedVersion, match="does not serve Fetch"):
        table.pick(ApiKey.FETCH)
    with pytest.raises(UnsupportedVersion, match="API 999 is unknown here"):
        table.pick(999)


def test_who_has_to_be_newer() -> None:
    old = VersionTable(ADDRESS, [ApiVersion(api_key=ApiKey.FETCH, min_version=0, max_version=3)])
    new = VersionTable(ADDRESS, [ApiVersion(api_key=ApiKey.FETCH, min_version=30, max_version=31)])
    with pytest.raises(UnsupportedVersion, match="newer broker"):
        old.pick(ApiKey.FETCH)
    with pytest.raises(UnsupportedVersion, match="newer client"):
        new.pick(ApiKey.FETCH)


# Waiting.


@given(st.integers(0, 1000), st.integers(0, 100_000), st.integers(0, 1_000_000), st.integers())
def test_backoff_doubles_within_its_bounds(initial_ms: int, more_ms: int, failures: int, seed: int) -> None:
    max_ms = initial_ms + more_ms
    delay_ms = backoff_ms(initial_ms, max_ms, failures, random.Random(seed))
    plain_ms = min(initial_ms * 2 ** min(max(failures, 1) - 1, 40), max_ms)
    assert plain_ms * (1 - JITTER) - 1e-6 <= delay_ms <= min(plain_ms * (1 + JITTER), max_ms) + 1e-6


async def test_one_timer_for_many_deadlines() -> None:
    time = FakeTime()
    due: list[float] = [1030.0, 1010.0, 1020.0]
    fired: list[float] = []

    def expire(now: float) -> float | None:
        fired.append(now)
        due[:] = [deadline for deadline in due if deadline > now]
        return min(due, default=None)

    timer = DeadlineTimer(time, time, expire)
    for deadline in due:
        timer.watch(deadline)
        assert time.timers() == 1
    await time.advance(15)
    assert fired == [1010.0]
    timer.watch(1100.0)
    assert time.timers() == 1
    await time.advance(100)
    assert fired[:3] == [1010.0, 1020.0, 1030.0]
    timer.watch(time.now + 5)
    timer.stop()
    assert time.timers() == 0
    timer.watch(time.now - 5)
    await time.advance(0)
    assert len(fired) == 4


# Encoding.


@given(
    st.sampled_from([0, 4, 8, 9, 12]),
    st.one_of(st.none(), st.text(max_size=20)),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_an_encoded_body_is_the_same_request(version: int, client_id: str | None, cuts: list[int]) -> None:
    message = MetadataRequest(topics=None if version else [])
    body = encode_message(message, version, APIS[ApiKey.METADATA].is_flexible(version))
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    parts = [memoryview(body)[start:end] for start, end in itertools.pairwise(edges)]
    sent = encode(ApiKey.METADATA, version, 7, client_id, EncodedBody(parts))
    assert b"".join(sent) == encode_request(ApiKey.METADATA, version, 7, client_id, message)
    assert [b"".join(encode(ApiKey.METADATA, version, 7, client_id, message))] == [b"".join(sent)]


def test_where_the_body_of_an_answer_begins() -> None:
    response_class: Any = APIS[ApiKey.METADATA].response_class()
    for version, expected in ((0, 4), (8, 4), (9, 5), (12, 5)):
        frame = encode_response(ApiKey.METADATA, version, 1, response_class())[4:]
        assert body_position(ApiKey.METADATA, version, frame) == expected
    assert body_position(ApiKey.METADATA, 9, b"\x00\x00\x00\x01\x01\x05\x02ab\x00") == 9
    with pytest.raises(DecodeError):
        body_position(ApiKey.METADATA, 9, b"\x00\x00\x00\x01")


# Errors.


def all_errors(kind: type[NetworkError]) -> list[type[NetworkError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in all_errors(child))]


@pytest.mark.parametrize("kind", all_errors(NetworkError), ids=lambda kind: kind.__name__)
def test_every_error_names_its_address_and_has_a_code(kind: type[NetworkError]) -> None:
    error = kind(Address("::1", 9092), "something happened", was_sent=True)
    assert isinstance(error, KafkaError)
    assert str(error) == "[::1]:9092: something happened"
    assert error.code is not ErrorCode.NONE
    copy = error.for_request(was_sent=False)
    assert type(copy) is kind
    assert copy is not error
    assert not copy.was_sent
    assert not (isinstance(error, LocalError) and isinstance(error, RemoteError))


def test_whose_fault_it_is() -> None:
    assert issubclass(errors.ProtocolViolation, RemoteError)
    assert issubclass(errors.ConnectFailed, RemoteError)
    assert issubclass(errors.InvalidRequest, LocalError)
    assert issubclass(errors.ClosedHere, LocalError)
    assert Disconnected.retriable
    assert not errors.ProtocolViolation.retriable
    assert not errors.UnsupportedVersion.retriable
