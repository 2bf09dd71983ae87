"""Closed batches into bytes for the wire, again under another identity, or into smaller batches."""

from __future__ import annotations

from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.settings import ProducerSettings
from penstock.records.batch import read_header
from penstock.records.builder import read_records
from penstock.records.record import DecodedRecord
from penstock.records.sealing import reseal, seal


def seal_batch(batch: ProducerBatch, settings: ProducerSettings, *, transactional: bool) -> None:
    """Compress, number and checksum; the second time only what has changed."""
    identity = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    if batch.sealed is None:
        assert batch.plain is not None
        batch.sealed = seal(
            batch.plain,
            count=batch.count,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            codec=settings.codec,
            level=settings.level,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=transactional,
        )
        batch.plain = None
    elif identity != batch.sealed_as:
        # A copy: the bytes of the last attempt may still lie in a socket's buffer.
        batch.sealed = bytearray(batch.sealed)
        reseal(
            batch.sealed,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    batch.sealed_as = identity


def split_batch(batch: ProducerBatch, size_max: int) -> list[ProducerBatch]:
    """The records of a sealed batch in batches of at most `size_max` plain bytes, at least one record in each."""
    assert batch.sealed is not None
    records = read_records(batch.sealed, 0, read_header(batch.sealed))
    pieces: list[ProducerBatch] = []
    start = 0
    for index, record in enumerate(records):
        if not pieces or _append(pieces[-1], record) < 0:
            if pieces:
                pieces[-1].close()
            start = index
            piece = _piece(batch, size_max)
            _append(piece, record)
            pieces.append(piece)
            batch.pieces.append((start, piece))
    pieces[-1].close()
    return pieces


def _piece(batch: ProducerBatch, size_max: int) -> ProducerBatch:
    piece = ProducerBatch(
        batch.tp, size_max=size_max, now=batch.created_at, deadline=batch.deadline, io_thread=batch.io_thread
    )
    piece.parent = batch
    return piece


def _append(piece: ProducerBatch, record: DecodedRecord) -> int:
    assert piece.writer is not None
    _, timestamp, key, value, headers = record
    return piece.writer.append(timestamp, key, value, headers)
