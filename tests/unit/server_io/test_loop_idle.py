from penstock.server.loop_idle import LoopIdle


def test_what_is_not_busy_is_idle() -> None:
    wall, busy = 10.0, 1.0
    idle = LoopIdle(monotonic=lambda: wall, thread_seconds=lambda: busy)
    assert idle.read() == 1.0
    wall, busy = 12.0, 1.5
    assert idle.read() == 0.75
    wall, busy = 13.0, 2.6
    assert idle.read() == 0.0
