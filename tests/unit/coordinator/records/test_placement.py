"""Where Kafka puts groups and transactional ids; the numbers are those of Java's `String.hashCode`."""

from __future__ import annotations

import pytest

from penstock.coordinator.placement import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("grüppe", -1233264812),
        ("😀", 1772899),
    ],
)
def test_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_partitions() -> None:
    assert partition_for("hello", 50) == 22
    assert partition_for("polygenelubricants", 50) == 0
    assert {partition_for(f"group-{number}", 50) for number in range(2000)} == set(range(50))
