from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.server.memory import MemoryBudget
from penstock.server.receiving import BASE_BYTES, JUMP_BYTES, ReceiveBuffer, buffer_bytes_for
from tests.unit.server_io.fakes import Connection


def fill(buffer: ReceiveBuffer, size: int) -> None:
    buffer.end += size


def test_a_partial_frame_that_fits_behind_stays_where_it_is() -> None:
    buffer = ReceiveBuffer()
    buffer.start, buffer.end = 1000, 1100
    assert buffer.fit(500)
    assert (buffer.start, buffer.end, buffer.limit) == (1000, 1100, BASE_BYTES)


def test_a_partial_frame_at_the_end_moves_to_the_front() -> None:
    buffer = ReceiveBuffer()
    buffer.view[BASE_BYTES - 3 :] = b"abc"
    buffer.start, buffer.end = BASE_BYTES - 3, BASE_BYTES
    assert buffer.fit(4)
    assert (buffer.start, buffer.end) == (0, 3)
    assert bytes(buffer.view[:3]) == b"abc"


def test_a_frame_of_common_size_gets_its_buffer_in_one_step_and_is_read_exactly() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, 100)
    assert not buffer.fit(1_000_004)
    buffer.grow(1_000_004)
    assert buffer.capacity == buffer_bytes_for(1_000_004)
    assert buffer.limit == 1_000_004


def test_a_claimed_size_is_allocated_only_as_bytes_arrive() -> None:
    buffer = ReceiveBuffer()
    fill(buffer, 4)
    need = 100 * 1024 * 1024
    steps = [buffer.capacity]
    while buffer.capacity < need:
        assert not buffer.fit(need)
        buffer.grow(need)
        assert buffer.capacity <= max(JUMP_BYTES, 2 * steps[-1])
        steps.append(buffer.capacity)
        if buffer.capacity < need:
            fill(buffer, buffer.capacity - buffer.end - 1)
            assert buffer.fit(need), "not full yet"
            fill(buffer, 1)
    assert len(steps) == 7
    assert buffer.fit(need)
    assert buffer.limit == need


def test_growing_and_shrinking_keep_what_has_arrived() -> None:
    buffer = ReceiveBuffer()
    buffer.view[10:15] = b"hello"
    buffer.start, buffer.end = 10, 15
    buffer.grow(200_000)
    assert bytes(buffer.view[buffer.start : buffer.end]) == b"hello"
    assert buffer.shrink()
    assert buffer.capacity == BASE_BYTES
    assert bytes(buffer.view[buffer.start : buffer.end]) == b"hello"
    buffer.grow(200_000)
    fill(buffer, 150_000)
    assert not buffer.shrink()


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 200), st.integers(1, 300_000)), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 100_000), min_size=1, max_size=20),
    limit=st.sampled_from([-1, 200_000]),
)
def test_frames_arrive_whole_however_the_stream_is_cut(sizes: list[int], cuts: list[int], limit: int) -> None:
    connection = Connection(budget=MemoryBudget(limit))
    bodies = [bytes([index % 251]) * size for index, size in enumerate(sizes)]
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    position, turn = 0, 0
    while position < len(stream):
        # One large piece in each round keeps the number of rounds small.
        size = [50_000, *cuts][turn % (len(cuts) + 1)]
        turn += 1
        position += connection.receive(stream[position : position + size])
        connection.tasks.run_soon()
    assert connection.owner.frames == bodies
    connection.session.give_back_memory()
    connection.session.give_back_memory()
    assert connection.session._buffer.capacity == BASE_BYTES
    assert connection.owner.budget.used == 0
