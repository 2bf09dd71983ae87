"""The consumer's calls about offsets: where it reads on, what its group has committed, what the log holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.base.types import TopicPartition
from penstock.client.config import consumer_keys
from penstock.client.consumer.arguments import (
    Offsets,
    Partitions,
    as_offsets,
    as_partition,
    as_partitions,
    as_times,
)
from penstock.client.consumer.fetching.list_offsets import OffsetAndTimestamp, list_offsets
from penstock.client.consumer.life import ConsumerLife
from penstock.client.consumer.parts import keeps_offsets
from penstock.client.consumer.positions import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    ResetPolicy,
)
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], object]


class OffsetCalls(ConsumerLife):
    # Positions.

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record that will be given."""
        poller = await self._ready()
        partition = as_partition(partition)
        await poller.positions_known(partition, self._timeout(timeout_ms))
        position = self._subscription.state(partition).position
        assert position is not None
        return self._window.unread().get(partition, position.offset)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on at this offset. With an `OffsetAndMetadata` that has a leader epoch, a truncated log is noticed."""
        self._check_loop()
        wanted = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if not isinstance(wanted.offset, int):
            raise TypeError(f"an offset is a number or an OffsetAndMetadata, not {offset!r}")
        if wanted.offset < 0:
            raise InvalidState(f"Offset {wanted.offset} cannot be sought: offsets count from 0.")
        partition = as_partition(partition)
        self._subscription.seek(partition, wanted.offset, wanted.leader_epoch)
        self._moved([partition])

    def seek_to_beginning(self, partitions: Partitions = ()) -> None:
        """Go on at the first record of these partitions, of all without an argument. Looked up by the next poll."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, partitions: Partitions = ()) -> None:
        """Go on behind the last record; with read_committed behind the last one that is decided."""
        self._seek_to(LATEST, partitions)

    def _seek_to(self, policy: ResetPolicy, partitions: Partitions) -> None:
        chosen = self._assigned(partitions) or list(self._subscription.partitions)
        for partition in chosen:
            self._subscription.request_reset(partition, policy)
        self._moved(chosen)

    def pause(self, partitions: Partitions) -> None:
        """Give no records of these partitions until `resume`; they stay assigned."""
        chosen = self._assigned(partitions)
        for partition in chosen:
            self._subscription.state(partition).paused = True
        self._rewind(chosen)
        self._changed()

    def resume(self, partitions: Partitions) -> None:
        """Give records of these partitions again."""
        for partition in self._assigned(partitions):
            self._subscription.state(partition).paused = False
        self._changed()

    def paused(self) -> frozenset[TopicPartition]:
        """Partitions that poll() leaves out at present."""
        return self._subscription.paused()

    # Commits.

    async def commit(self, offsets: Offsets | None = None, timeout_ms: float | None = None) -> None:
        """Commit these offsets, or the positions behind the records given so far; raises unless it succeeded."""
        commits = (await self._started()).need_commits()
        chosen = self._chosen(offsets)
        await commits.commit(chosen, timeout_ms=self._timeout(timeout_ms))

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """The same without waiting. Callbacks `(offsets, error | None)` run in later polls, in order."""
        self._check_open()
        if not keeps_offsets(self.config):
            raise InvalidState("Offsets are committed for a group: set group.id.")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is a function of the offsets and the error, not {callback!r}")
        chosen = self._chosen(offsets)
        if self._parts is None and offsets is None and callback is None:
            return  # nothing was read yet
        self._bind().need_commits().commit_async(chosen, callback)

    def _chosen(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the user wants committed: by that he says that he is done with it."""
        chosen = self._subscription.all_consumed() if offsets is None else as_offsets(offsets)
        self._in_hand.committed(chosen)
        return chosen

    async def committed(
        self, partitions: Partitions, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed last; None where nothing was."""
        commits = (await self._started()).need_commits()
        return await commits.committed(as_partitions(partitions), timeout_ms=self._timeout(timeout_ms))

    # The log.

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Per partition the first record at or after the time (milliseconds since the epoch); None if there is none."""
        return await self._list(as_times(timestamps), timeout_ms, "offsets_for_times", read_committed=False)

    async def beginning_offsets(
        self, partitions: Partitions, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record that is still there."""
        found = await self._list(
            dict.fromkeys(as_partitions(partitions), EARLIEST_TIMESTAMP), timeout_ms, "beginning_offsets"
        )
        return {each: known.offset if known is not None else 0 for each, known in found.items()}

    async def end_offsets(self, partitions: Partitions, timeout_ms: float | None = None) -> dict[TopicPartition, int]:
        """The offset behind the last record; with read_committed behind the last one that is decided."""
        found = await self._list(dict.fromkeys(as_partitions(partitions), LATEST_TIMESTAMP), timeout_ms, "end_offsets")
        return {each: known.offset if known is not None else 0 for each, known in found.items()}

    async def _list(
        self, wanted: dict[TopicPartition, int], timeout_ms: float | None, what: str, *, read_committed: bool = True
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        parts = await self._started()
        if not wanted:
            return {}
        try:
            return await list_offsets(
                parts.core,
                wanted,
                isolation_level=parts.settings.isolation_level if read_committed else 0,
                timeout_ms=self._timeout(timeout_ms),
                what=what,
            )
        finally:
            self._forget({topic for topic, _ in wanted})

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end as the last fetch told it; None when nothing is known yet."""
        partition = as_partition(partition)
        state = self._subscription.state(partition)
        lag = state.lag(self._reads_committed)
        unread = self._window.unread().get(partition)
        return lag if lag is None or unread is None or state.position is None else lag + state.position.offset - unread

    async def current_lag(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        """`lag`, and where nothing is known yet the end is asked for. None without a position."""
        partition = as_partition(partition)
        state = self._subscription.state(partition)
        if state.position is not None and self.lag(partition) is None:
            state.end_offset = (await self.end_offsets(partition, timeout_ms))[partition]
        return self.lag(partition)

    @property
    def _reads_committed(self) -> bool:
        return self.config[consumer_keys.ISOLATION_LEVEL].lower() == "read_committed"
