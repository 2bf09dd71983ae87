"""Frames out of bytes, however the bytes were cut."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.network.framing import BASE_BYTES, BadFrame, FrameReceiver, describe_bad_size

LIMIT = 1 << 20


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def receive(receiver: FrameReceiver, data: bytes, cuts: list[int]) -> list[bytes]:
    """Everything that comes out when `data` goes in in pieces of the sizes `cuts` (over and over)."""
    found = []
    kept = []
    position = turn = 0
    while position < len(data):
        space = receiver.space()
        assert len(space) > 0
        piece = data[position : position + min(len(space), cuts[turn % len(cuts)])]
        space[: len(piece)] = piece
        receiver.received(len(piece))
        position += len(piece)
        turn += 1
        while (frame := receiver.next_frame()) is not None:
            kept.append(frame)
            found.append(bytes(frame))
    # What was handed out is the caller's: nothing that came later was written into it.
    assert [bytes(frame) for frame in kept] == found
    return found


sizes = st.one_of(st.integers(1, 40), st.integers(BASE_BYTES - 10, BASE_BYTES + 10), st.integers(1, 4 * BASE_BYTES))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(sizes, st.integers(0, 255)), max_size=12),
    st.lists(st.integers(1, 2 * BASE_BYTES), min_size=1, max_size=5),
)
def test_whatever_the_pieces_the_frames_are_the_same(frames: list[tuple[int, int]], cuts: list[int]) -> None:
    bodies = [bytes([fill]) * size for size, fill in frames]
    if sum(map(len, bodies)) > 100_000:
        cuts = [max(cut, 1000) for cut in cuts]
    receiver = FrameReceiver(LIMIT)
    assert receive(receiver, b"".join(map(framed, bodies)), cuts) == bodies
    assert receiver.unfinished() is None


@given(st.binary(min_size=1, max_size=50), st.integers(1, 53))
def test_an_unfinished_frame_is_known_as_such(body: bytes, cut: int) -> None:
    data = framed(body)
    receiver = FrameReceiver(LIMIT)
    receive(receiver, data[:cut], [7])
    if cut >= len(data):
        assert receiver.unfinished() is None
    elif cut < 4:
        assert receiver.unfinished() == (cut, 4)
    else:
        assert receiver.unfinished() == (cut - 4, len(body))


def test_a_large_frame_has_memory_of_its_own() -> None:
    receiver = FrameReceiver(LIMIT)
    data = framed(b"a" * 200_000)
    receiver.space()[:BASE_BYTES] = data[:BASE_BYTES]
    receiver.received(BASE_BYTES)
    assert receiver.next_frame() is None
    # The socket is read to the frame's end exactly, so that the next frame starts at the front.
    assert len(receiver.space()) == len(data) - BASE_BYTES
    assert receiver.unfinished() == (BASE_BYTES - 4, 200_000)


@pytest.mark.parametrize("size", [0, -1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_an_impossible_size(size: int) -> None:
    receiver = FrameReceiver(LIMIT)
    with pytest.raises(BadFrame, match="is this a Kafka broker"):
        receive(receiver, struct.pack(">i", size), [4])


@given(st.binary(min_size=4, max_size=300), st.integers(1, 300))
def test_garbage_is_frames_or_refused(data: bytes, cut: int) -> None:
    receiver = FrameReceiver(100)
    try:
        found = receive(receiver, data, [cut])
    except BadFrame:
        return
    assert data.startswith(b"".join(map(framed, found)))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"HTTP", "HTTP server"),
        (b"\x15\x03\x03\x00", "security.protocol"),
        (b"\x16\x03\x01\x02", "TLS server"),
        (b"SSH-", "SSH server"),
        (b"220 ", "mail or FTP"),
        (b"\x00\x00\x00\x00", "0 bytes"),
    ],
)
def test_strangers_are_recognised(head: bytes, words: str) -> None:
    assert words in describe_bad_size(head, LIMIT)
