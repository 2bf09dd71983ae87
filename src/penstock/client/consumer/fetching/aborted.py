"""Which batches read_committed skips.

With the records the broker names the aborted transactions that overlap them: (producer id, first offset). Going through
the batches in order, a producer's batches belong to an aborted transaction from its first offset on, until its abort
marker; the next transaction of the same producer has an entry of its own, or is not aborted.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.records.batch import BatchHeader
from penstock.records.buffers import Buffer
from penstock.records.builder import ControlType, read_end_transaction_marker


class AbortedFilter:
    __slots__ = ("_producers", "_upcoming")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        # Latest first: the next one is at the end.
        self._upcoming = sorted(aborted, key=lambda each: -each[1])
        self._producers: set[int] = set()

    def skips(self, header: BatchHeader) -> bool:
        """Whether the batch, which is no control batch, belongs to an aborted transaction."""
        self._begin_until(header.last_offset)
        return header.is_transactional and header.producer_id in self._producers

    def saw_control(self, buffer: Buffer, position: int, header: BatchHeader) -> None:
        """A control batch goes by; an abort marker ends its producer's transaction."""
        self._begin_until(header.last_offset)
        if header.producer_id not in self._producers:
            return
        marker = read_end_transaction_marker(buffer, position, header)
        if marker is not None and marker.type is ControlType.ABORT:
            self._producers.discard(header.producer_id)

    def _begin_until(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1][1] <= offset:
            self._producers.add(upcoming.pop()[0])
