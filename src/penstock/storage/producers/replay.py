"""Producer state follows the batches of the log: at an append, in recovery, and when it is rebuilt after a start."""

from __future__ import annotations

from penstock.base.ports import Buffer
from penstock.records.batch import CONTROL_MASK, BatchHeader
from penstock.records.builder import ControlType, read_end_transaction_marker
from penstock.storage.producers.state import ProducerStateManager
from penstock.storage.segments.scan import iter_headers
from penstock.storage.segments.segment import Segment
from penstock.storage.segments.segment_list import SegmentList
from penstock.storage.segments.transaction_index import AbortedTransaction, TransactionIndex


def follow_batch(
    producers: ProducerStateManager, header: BatchHeader, content: Buffer | None, index: TransactionIndex | None
) -> None:
    """Follow a batch that is in the log with its true base offset; an aborted transaction is noted in `index`.

    `content` is needed for control batches only: the whole batch.
    """
    if header.producer_id < 0:
        return
    first_offset = header.base_offset
    if not header.attributes & CONTROL_MASK:
        last_offset = first_offset + header.last_offset_delta
        producers.update(header, first_offset, last_offset, header.max_timestamp, replay=True)
    elif content is not None:
        follow_marker(producers, header, content, index, replay=True)


def follow_marker(
    producers: ProducerStateManager,
    header: BatchHeader,
    content: Buffer,
    index: TransactionIndex | None,
    *,
    replay: bool = False,
) -> None:
    """Follow a control batch; one that compaction has emptied, or that is no transaction's, changes nothing."""
    marker = read_end_transaction_marker(content, 0, header)
    if marker is None:
        return
    completed = producers.update_control(
        header,
        header.base_offset,
        header.max_timestamp,
        coordinator_epoch=marker.coordinator_epoch,
        is_aborted=marker.type is ControlType.ABORT,
        replay=replay,
    )
    if completed is None:
        return
    if completed.is_aborted and index is not None:
        last_stable_offset = producers.last_stable_offset(completed)
        index.append(
            AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset)
        )
    producers.complete(completed)


def rebuild_producers(
    producers: ProducerStateManager, segments: SegmentList, log_start_offset: int, end_offset: int, now_ms: int
) -> None:
    """Bring the state to `end_offset`: from the newest snapshot that is not above it, and the log after that."""
    producers.truncate_and_reload(log_start_offset, end_offset, now_ms)
    start_offset = producers.map_end_offset
    if start_offset < end_offset:
        for index in range(max(segments.floor_index(start_offset), 0), len(segments)):
            segment = segments[index]
            if segment.base_offset >= end_offset:
                break
            _replay_segment(producers, segment, start_offset, end_offset)
            segments.touch(segment)
    producers.map_end_offset = end_offset


def _replay_segment(producers: ProducerStateManager, segment: Segment, start_offset: int, end_offset: int) -> None:
    found = segment.locate(start_offset)
    if found is None:
        return
    file = segment.open_file().file
    for position, header in iter_headers(file, found[0], segment.size):
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0:
            is_control = header.attributes & CONTROL_MASK
            content = file.read_at(position, header.size_in_bytes) if is_control else None
            follow_batch(producers, header, content, None)
