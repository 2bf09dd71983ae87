"""Sequences: given once, repeated in order, renumbered under a new epoch only."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.producer.batch import ProducerBatch, add_sequence
from penstock.client.producer.idempotence import EPOCH_MAX, IN_FLIGHT_MAX, Idempotence, Retry

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def closed_batch(count: int = 1, tp: TopicPartition = TP) -> ProducerBatch:
    made = ProducerBatch(tp, size_max=1 << 20, now=0.0, deadline=100.0)
    assert made.writer is not None
    for _ in range(count):
        made.writer.append(0, None, b"v")
    made.close()
    return made


def sent(identity: Idempotence, count: int = 1, tp: TopicPartition = TP) -> ProducerBatch:
    made = closed_batch(count, tp)
    assert identity.may_send(made)
    identity.number(made)
    made.attempts += 1
    made.on_wire = True
    return made


def with_identity(epoch: int = 0) -> Idempotence:
    """An identity under which both partitions have had their first batch, so the next sequence is 1."""
    identity = Idempotence()
    identity.assign(7, epoch)
    for tp in (TP, OTHER):
        identity.completed(sent(identity, tp=tp), 0)
    return identity


def test_nothing_is_sent_without_an_identity() -> None:
    assert not Idempotence().may_send(closed_batch())


def test_sequences_follow_the_records() -> None:
    identity = with_identity()
    first, second = sent(identity, 3), sent(identity, 2)
    assert (first.base_sequence, first.last_sequence) == (1, 3)
    assert (second.base_sequence, second.producer_id, second.producer_epoch) == (4, 7, 0)
    assert sent(identity, tp=OTHER).base_sequence == 1


def test_the_first_batch_of_a_partition_travels_alone() -> None:
    identity = Idempotence()
    identity.assign(7, 0)
    first = sent(identity)
    assert not identity.may_send(closed_batch())
    assert identity.may_send(closed_batch(tp=OTHER))
    identity.completed(first, 0)
    sent(identity)
    assert identity.may_send(closed_batch())


def test_a_batch_that_was_overtaken_starts_again_under_a_new_epoch() -> None:
    identity = with_identity()
    first, second = sent(identity), sent(identity)
    identity.completed(second, 9)
    assert identity.judge(first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1) is Retry.YES
    first.on_wire = False
    identity.maybe_bump()
    assert (first.producer_epoch, first.base_sequence) == (1, 0)


def test_at_most_five_batches_of_a_partition_are_in_flight() -> None:
    identity = with_identity()
    batches = [sent(identity) for _ in range(IN_FLIGHT_MAX)]
    assert not identity.may_send(closed_batch())
    identity.completed(batches[0], 0)
    assert identity.may_send(closed_batch())


def test_a_repeated_batch_waits_until_it_is_the_oldest() -> None:
    identity = with_identity()
    first, second = sent(identity), sent(identity)
    first.on_wire = second.on_wire = False
    assert not identity.may_send(second)
    assert identity.may_send(first)
    identity.completed(first, 0)
    assert identity.may_send(second)


def test_a_gap_behind_a_batch_under_way_is_waited_for() -> None:
    identity = with_identity()
    sent(identity)
    second = sent(identity)
    assert identity.judge(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1) is Retry.YES
    identity.maybe_bump()
    assert identity.producer_epoch == 0


def test_a_gap_right_behind_the_last_acknowledged_batch_bumps_the_epoch() -> None:
    identity = with_identity()
    first = sent(identity, 2)
    identity.completed(first, 10)
    second, third = sent(identity), sent(identity, 4)
    assert identity.judge(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1) is Retry.YES
    second.on_wire = False
    identity.maybe_bump()
    assert identity.producer_epoch == 0, "the third is still on the wire"
    assert not identity.may_send(closed_batch())
    third.on_wire = False
    identity.maybe_bump()
    assert identity.producer_epoch == 1
    assert (second.base_sequence, third.base_sequence, third.producer_epoch) == (0, 1, 1)
    assert identity.may_send(second)


def test_other_partitions_keep_their_epoch_until_nothing_is_in_flight() -> None:
    identity = with_identity()
    elsewhere = sent(identity, tp=OTHER)
    lost = sent(identity)
    lost.on_wire = False
    identity.failed(lost, certain=True)
    identity.maybe_bump()
    assert identity.producer_epoch == 1
    assert elsewhere.producer_epoch == 0
    assert not identity.may_send(closed_batch(tp=OTHER))
    identity.completed(elsewhere, 0)
    fresh = sent(identity, tp=OTHER)
    assert (fresh.producer_epoch, fresh.base_sequence) == (1, 0)


def test_an_expired_batch_leaves_the_partition_unresolved() -> None:
    identity = with_identity()
    lost, next_one = sent(identity), sent(identity)
    identity.failed(lost, certain=False)
    assert not identity.may_send(closed_batch())
    identity.completed(next_one, 5)
    identity.maybe_bump()
    assert identity.producer_epoch == 0, "the one behind it was accepted, so it was written"
    assert identity.may_send(closed_batch())


def test_an_expired_batch_that_nothing_vouches_for_bumps_the_epoch() -> None:
    identity = with_identity()
    identity.failed(sent(identity), certain=False)
    identity.maybe_bump()
    assert identity.producer_epoch == 1
    fresh = sent(identity)
    assert (fresh.producer_epoch, fresh.base_sequence) == (1, 0)


def test_a_late_answer_to_an_expired_batch_counts() -> None:
    identity = with_identity()
    expired = sent(identity)
    identity.failed(expired, certain=False)
    identity.completed(expired, 3)
    identity.maybe_bump()
    assert identity.producer_epoch == 0


def test_after_the_last_epoch_a_new_id_is_needed() -> None:
    identity = with_identity(EPOCH_MAX)
    kept = sent(identity)
    kept.on_wire = False
    identity.failed(sent(identity), certain=True)
    identity.maybe_bump()
    assert not identity.has_identity
    identity.assign(8, 0)
    assert (kept.producer_id, kept.producer_epoch, kept.base_sequence) == (8, 0, 0)


def test_a_producer_that_the_broker_forgot_starts_again() -> None:
    identity = with_identity()
    batch = sent(identity)
    assert identity.judge(batch, ErrorCode.UNKNOWN_PRODUCER_ID, 9) is Retry.YES
    batch.on_wire = False
    identity.maybe_bump()
    assert (identity.producer_epoch, batch.base_sequence) == (1, 0)


def test_a_transactional_producer_never_bumps_by_itself() -> None:
    identity = Idempotence(transactional=True)
    identity.assign(1, 1)
    batch = sent(identity)
    assert identity.judge(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1) is Retry.NO
    identity.failed(batch, certain=True)
    identity.maybe_bump()
    assert identity.producer_epoch == 1


def test_pieces_share_out_the_sequences() -> None:
    identity = with_identity()
    whole, behind = sent(identity, 5), sent(identity)
    pieces = [closed_batch(2), closed_batch(3)]
    identity.replace(whole, pieces)
    assert [piece.base_sequence for piece in pieces] == [1, 3]
    whole.on_wire = behind.on_wire = False
    assert identity.may_send(pieces[0])
    assert not identity.may_send(pieces[1])


def test_sequences_begin_again_at_zero() -> None:
    assert add_sequence(2**31 - 1, 1) == 0
    assert add_sequence(2**31 - 2, 5) == 3


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["send", "ok", "retry", "lose", "expire"]), max_size=60), st.randoms())
def test_a_strict_broker_never_sees_a_gap_for_long(steps: list[str], rng: object) -> None:
    """A model broker that takes only the next sequence of the newest epoch: all but the lost ones get through."""
    identity = Idempotence()
    identity.assign(7, 0)
    log: list[ProducerBatch] = []
    state = {"epoch": 0, "next": 0}
    queue: list[ProducerBatch] = []

    def deliver(batch: ProducerBatch) -> None:
        batch.on_wire = False
        if not log:  # a producer that is not known yet may begin anywhere
            state.update(epoch=batch.producer_epoch, next=batch.base_sequence)
        if batch.producer_epoch > state["epoch"] and batch.base_sequence == 0:
            state.update(epoch=batch.producer_epoch, next=0)
        if (batch.producer_epoch, batch.base_sequence) == (state["epoch"], state["next"]):
            state["next"] += batch.count
            log.append(batch)
            identity.completed(batch, len(log))
        else:
            assert identity.judge(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1) is Retry.YES
            queue.append(batch)
            queue.sort(key=lambda each: each.base_sequence)

    pending: list[ProducerBatch] = []
    for step in [*steps, *["ok", "send"] * 60]:
        identity.maybe_bump()
        if step == "send":
            batch = queue[0] if queue else closed_batch(2)
            if identity.may_send(batch):
                if queue:
                    queue.pop(0)
                identity.number(batch)
                batch.on_wire = True
                pending.append(batch)
        elif pending:
            batch = pending.pop(0)
            if step in ("ok", "retry"):
                deliver(batch)
            else:
                batch.on_wire = False
                identity.failed(batch, certain=step == "lose")
    sequences = [(batch.producer_epoch, batch.base_sequence) for batch in log]
    assert sequences == sorted(set(sequences))
    assert len(log) >= 20
