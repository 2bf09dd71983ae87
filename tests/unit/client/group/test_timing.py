from __future__ import annotations

from penstock.client.consumer.group.timing import HeartbeatTimer, Intervals

INTERVALS = Intervals(heartbeat_s=3, session_s=45, poll_s=300, retry_s=0.1)


def test_a_heartbeat_is_due_at_its_interval() -> None:
    timer = HeartbeatTimer(INTERVALS, 0)
    assert not timer.is_due(2.9)
    assert timer.is_due(3)
    timer.sent(3)
    assert timer.next_at() == 6
    timer.failed(4)
    assert timer.is_due(4.1)


def test_the_session_counts_from_the_last_answer() -> None:
    timer = HeartbeatTimer(INTERVALS, 0)
    timer.heard(10)
    assert not timer.is_session_over(55)
    assert timer.is_session_over(55.1)
    timer.session_lost(56)
    assert not timer.is_session_over(100)
    timer.session_started(200)
    assert not timer.is_session_over(245)


def test_the_poll_interval_counts_from_the_last_poll() -> None:
    timer = HeartbeatTimer(INTERVALS, 0)
    assert timer.is_poll_overdue(300.1)
    timer.polled(300)
    assert not timer.is_poll_overdue(600)
