from penstock.server.memory import MemoryBudget


def test_a_frame_is_admitted_while_anything_is_available() -> None:
    budget = MemoryBudget(100)
    assert budget.try_charge(90)
    assert budget.try_charge(500)
    assert not budget.try_charge(1)
    assert budget.available == 0
    budget.release(500)
    assert budget.available == 10
    assert budget.try_charge(1)


def test_the_waiting_are_served_in_order_and_nobody_overtakes_them() -> None:
    budget = MemoryBudget(100)
    served: list[str] = []
    assert budget.try_charge(100)
    budget.wait(60, lambda: served.append("first"))
    budget.wait(60, lambda: served.append("second"))
    budget.wait(60, lambda: served.append("third"))
    assert not budget.try_charge(1)
    budget.release(100)
    assert served == ["first", "second"]
    assert budget.used == 120
    budget.release(60)
    assert served == ["first", "second", "third"]


def test_who_leaves_the_queue_is_not_served_and_lets_the_next_one_in() -> None:
    budget = MemoryBudget(100)
    served: list[str] = []

    def gone() -> None:
        served.append("gone")

    assert budget.try_charge(100)
    budget.wait(60, gone)
    budget.wait(60, lambda: served.append("next"))
    budget.stop_waiting(gone)
    budget.release(100)
    assert served == ["next"]
    assert budget.waiting == 0


def test_without_a_limit_everything_is_admitted() -> None:
    for limit in (-1, 0):
        budget = MemoryBudget(limit)
        assert budget.try_charge(1 << 40)
        assert not budget.scarce()
        assert budget.available == 2**63 - 1


def test_memory_is_scarce_from_half_of_the_budget_on() -> None:
    budget = MemoryBudget(100)
    budget.try_charge(50)
    assert not budget.scarce()
    budget.try_charge(1)
    assert budget.scarce()
