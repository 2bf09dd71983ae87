"""The port to the partitions of a coordinator's topic. The server fills it with the replica manager."""

from __future__ import annotations

from typing import Protocol


class LogListener(Protocol):
    """What happens to a partition while a shard lives on it. Calls come from inside the change."""

    def high_watermark_moved(self, partition: int, offset: int) -> None:
        """Everything below `offset` is committed. During `append` too."""

    def leadership_changed(self, partition: int, leader_epoch: int | None) -> None:
        """Led here in this epoch from now on; None: not led here any more, or not here at all."""


class LogChunk(Protocol):
    """Bytes of the log that can be read without touching it; a storage `FileSlice` is one."""

    def read(self) -> bytes:
        """Blocks: for a worker."""

    def release(self) -> None:
        """On the loop, when it is no longer needed."""


class CoordinatorLog(Protocol):
    """The partitions of one topic. Everything is called on the loop and may raise KafkaError."""

    def start_offset(self, partition: int) -> int: ...

    def end_offset(self, partition: int) -> int:
        """The offset that the next record gets."""

    def high_watermark(self, partition: int) -> int: ...

    def batch_bytes_max(self, partition: int) -> int:
        """The largest batch that `append` takes."""

    def append(self, partition: int, batch: bytearray, leader_epoch: int) -> int:
        """Append one batch as its leader in `leader_epoch`; the offset of its last record.

        An error means that nothing was appended. Success does not mean committed: `high_watermark_moved` says that.
        """

    def open_chunk(self, partition: int, offset: int) -> LogChunk | None:
        """The batches from the one with `offset` on; the first is whole, the last may be cut. None: the log's end."""

    def subscribe(self, partition: int, listener: LogListener) -> None: ...

    def unsubscribe(self, partition: int, listener: LogListener) -> None: ...
