"""The local store: durable, serial, told to listeners, and whole after a crash at any byte."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer, File
from penstock.base.system import SystemFile, SystemFiles, SystemTasks
from penstock.metadata.deltas import (
    ClusterIdSet,
    Delta,
    FeatureChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.image import ClusterImage, PartitionState, TopicState
from penstock.metadata.local.file import encode_line, encode_snapshot, read_image
from penstock.metadata.local.store import LocalMetadataStore
from penstock.metadata.store import MetadataCorruptError, VersionConflictError
from tests.unit.metadata.test_image import histories, replayed


def topic(number: int) -> TopicState:
    partition = PartitionState(replicas=(0,), isr=(0,), leader=0)
    return TopicState(name=f"topic-{number}", id=UUID(int=number + 2), partitions=(partition,))


@pytest.fixture
async def tasks() -> AsyncIterator[SystemTasks]:
    tasks = SystemTasks(asyncio.get_running_loop(), threads=2)
    yield tasks
    await tasks.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.penstock")


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def write(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


async def opened(path: str, tasks: SystemTasks, files: SystemFiles | None = None) -> LocalMetadataStore:
    store = LocalMetadataStore(path, files=files or SystemFiles(), tasks=tasks)
    await store.load()
    return store


async def test_a_new_store_is_empty_and_its_file_is_there(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    assert store.image == ClusterImage()
    assert content(path) == b""
    await store.close()


async def test_a_reopened_store_has_the_same_image(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    await store.commit([ClusterIdSet(cluster_id="c")])
    image = await store.commit([TopicCreated(topic=topic(1))], expected_version=1)
    await store.close()
    assert image.version == 2
    assert (await opened(path, tasks)).image == image


async def test_a_version_conflict_changes_nothing(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    await store.commit([ClusterIdSet(cluster_id="c")])
    with pytest.raises(VersionConflictError):
        await store.commit([ClusterIdSet(cluster_id="d")], expected_version=0)
    assert store.image.cluster_id == "c"


async def test_deltas_that_do_not_fit_reach_neither_image_nor_file(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    with pytest.raises(KeyError):
        await store.commit([TopicDeleted(topic_id=UUID(int=77))])
    assert store.image == ClusterImage()
    assert content(path) == b""


async def test_a_commit_returns_after_its_listeners_and_they_see_every_version_in_order(
    path: str, tasks: SystemTasks
) -> None:
    store = await opened(path, tasks)
    seen: list[tuple[str, int, int]] = []

    async def slow(old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        await asyncio.sleep(0)
        assert store.image is new
        seen.append(("slow", old.version, new.version))

    async def quick(old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        seen.append(("quick", old.version, new.version))

    store.subscribe(slow)
    store.subscribe(quick)
    commits = [store.commit([ProducerIdsAllocated(next_producer_id=n)]) for n in range(1, 4)]
    await asyncio.gather(*commits)
    assert seen == [(who, n, n + 1) for n in range(3) for who in ("slow", "quick")]


async def test_a_listener_that_fails_does_not_undo_a_durable_change(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    followed: list[int] = []

    async def failing(old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        raise OSError("disk")

    async def following(old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        followed.append(new.version)

    store.subscribe(failing)
    store.subscribe(following)
    assert (await store.commit([ClusterIdSet(cluster_id="c")])).version == 1
    assert followed == [1]


async def test_a_cancelled_caller_leaves_a_whole_change_behind(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    caller = asyncio.ensure_future(store.commit([ClusterIdSet(cluster_id="c")]))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    image = await store.commit([FeatureChanged(name="f", level=1)])
    assert (image.version, image.cluster_id) == (2, "c")
    await store.close()
    assert (await opened(path, tasks)).image == image


def history(count: int) -> tuple[bytes, list[tuple[int, ClusterImage]]]:
    """A file of `count` versions, and the image after each of its lines with the byte where the line ends."""
    data, image = b"", ClusterImage()
    ends = [(0, image)]
    for version in range(1, count + 1):
        deltas: list[Delta] = [TopicCreated(topic=topic(version))]
        data += encode_line(version, deltas)
        image = image.apply(version, deltas)
        ends.append((len(data), image))
    return data, ends


def test_a_file_cut_at_any_byte_gives_the_whole_lines_before() -> None:
    data, ends = history(4)
    for cut in range(len(data) + 1):
        image, good = read_image(data[:cut], "file")
        expected = max((pair for pair in ends if pair[0] <= cut), key=lambda pair: pair[0])
        assert (good, image) == expected


@given(versions=histories(), data=st.data())
def test_any_history_is_replayed_from_its_file_and_a_cut_gives_a_prefix(
    versions: list[list[Delta]], data: st.DataObject
) -> None:
    lines = [encode_line(version, deltas) for version, deltas in enumerate(versions, start=1)]
    whole = b"".join(lines)
    assert read_image(whole, "file") == (replayed(versions), len(whole))
    cut = data.draw(st.integers(0, len(whole)))
    image, good = read_image(whole[:cut], "file")
    assert image == replayed(versions[: image.version])
    assert good == sum(map(len, lines[: image.version])) <= cut
    assert read_image(encode_snapshot(image), "file")[0] == image


async def test_a_torn_tail_is_removed_and_the_next_commit_follows_the_last_whole_line(
    path: str, tasks: SystemTasks
) -> None:
    data, ends = history(3)
    for cut in range(ends[2][0], len(data), 7):
        write(path, data[:cut])
        store = await opened(path, tasks)
        assert store.image == ends[2][1]
        await store.commit([ClusterIdSet(cluster_id="after")])
        await store.close()
        assert read_image(content(path), path)[0].cluster_id == "after"


def test_garbage_at_the_end_is_a_torn_line_too() -> None:
    data, ends = history(2)
    image, good = read_image(data + b"\0" * 100 + b"\n", "file")
    assert (good, image) == ends[2]


@pytest.mark.parametrize("position", [3, 40, 120])
def test_damage_in_the_middle_is_reported_not_repaired(position: int) -> None:
    data, _ = history(3)
    damaged = bytearray(data)
    damaged[position] ^= 0x01
    with pytest.raises(MetadataCorruptError, match="file is damaged"):
        read_image(bytes(damaged), "file")


def test_a_missing_version_is_reported() -> None:
    data = encode_line(1, [ClusterIdSet(cluster_id="c")]) + encode_line(3, [ClusterIdSet(cluster_id="d")])
    with pytest.raises(MetadataCorruptError, match="version 3 after version 1"):
        read_image(data, "file")


async def test_a_grown_file_is_replaced_by_a_snapshot(path: str, tasks: SystemTasks) -> None:
    store = await opened(path, tasks)
    await store.commit([TopicCreated(topic=topic(n)) for n in range(10)])
    filler = "x" * 4000
    for number in range(80):
        await store.commit([FeatureChanged(name=filler, level=number + 1)])
    image = store.image
    await store.close()
    data = content(path)
    assert len(data) < 256 * 1024
    assert b'"snapshot":true' in data.splitlines()[0]
    assert read_image(data, path)[0] == image


async def test_the_size_at_which_that_happens_is_a_setting(path: str, tasks: SystemTasks) -> None:
    store = LocalMetadataStore(path, files=SystemFiles(), tasks=tasks, rewrite_bytes_min=4096)
    await store.load()
    while b'"snapshot":true' not in content(path).partition(b"\n")[0]:
        assert len(content(path)) < 8192
        await store.commit([ClusterIdSet(cluster_id="c")])
    await store.close()


def test_a_snapshot_may_only_be_the_first_line() -> None:
    data, ends = history(1)
    with pytest.raises(MetadataCorruptError, match="not the first line"):
        read_image(data + encode_snapshot(ends[1][1]), "file")


class FailingFile(SystemFile):
    """A disk that takes half of a write, and perhaps refuses to cut it off again."""

    __slots__ = ("disk",)

    def __init__(self, path: str, flags: int, disk: FailingFiles) -> None:
        super().__init__(path, flags)
        self.disk = disk

    def append(self, data: Buffer) -> None:
        if self.disk.fails_append:
            super().append(bytes(data)[: len(data) // 2])
            raise OSError(28, "No space left on device")
        super().append(data)

    def sync(self) -> None:
        if self.disk.fails_sync:
            self.disk.fails_sync = False
            raise OSError(5, "Input/output error")
        super().sync()

    def truncate(self, size: int) -> None:
        if self.disk.fails_truncate:
            raise OSError(5, "Input/output error")
        super().truncate(size)


class FailingFiles(SystemFiles):
    fails_append = False
    fails_sync = False
    fails_truncate = False

    def open(self, path: str, *, create: bool = True) -> File:
        return FailingFile(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), self)


@pytest.mark.parametrize("fault", ["fails_append", "fails_sync"])
async def test_a_failing_disk_refuses_the_change_and_a_later_one_works(
    path: str, tasks: SystemTasks, fault: str
) -> None:
    files = FailingFiles()
    store = await opened(path, tasks, files)
    await store.commit([ClusterIdSet(cluster_id="c")])
    before = store.image
    setattr(files, fault, True)
    with pytest.raises(KafkaError) as caught:
        await store.commit([ClusterIdSet(cluster_id="d")])
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert store.image is before
    setattr(files, fault, False)
    image = await store.commit([ClusterIdSet(cluster_id="e")])
    await store.close()
    assert (await opened(path, tasks)).image == image


async def test_a_disk_that_cannot_be_cut_back_takes_no_more_changes(path: str, tasks: SystemTasks) -> None:
    files = FailingFiles()
    store = await opened(path, tasks, files)
    await store.commit([ClusterIdSet(cluster_id="c")])
    files.fails_append = files.fails_truncate = True
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            await store.commit([ClusterIdSet(cluster_id="d")])
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        files.fails_append = files.fails_truncate = False
    assert (await opened(path, tasks)).image.cluster_id == "c"


def test_ten_thousand_topics_load_quickly() -> None:
    # The bound is many times what it takes, so that only a quadratic replay can miss it.
    image = ClusterImage()
    data = b"".join(encode_line(n, [TopicCreated(topic=topic(n))]) for n in range(1, 10_001))
    started = time.perf_counter()
    image, _ = read_image(data, "file")
    assert len(image.topics) == 10_000
    assert time.perf_counter() - started < 5
