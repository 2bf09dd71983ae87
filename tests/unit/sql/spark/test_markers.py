"""Whether a batch was written before."""

from __future__ import annotations

import pytest

from penstock.sql.errors import EngineError
from penstock.sql.spark.running.markers import Home, Marker, verdict

HOME = Home(checkpoint_id="c1", plan_version=1, shuffle_partitions="2", state_provider="p")
MARKER = Marker(home=HOME, owner="o", batch_id=7, offsets=('{"t":{"0":10}}',))


@pytest.mark.parametrize(
    ("marker", "batch_id", "offsets", "expected"),
    [
        (Marker(home=HOME, owner="o"), 0, (), "new"),
        (MARKER, 8, ('{"t":{"0":12}}',), "new"),
        (MARKER, 7, ('{"t":{"0":10}}',), "done"),
        (MARKER, 6, ('{"t":{"0":8}}',), "done"),
    ],
    ids=["first", "next", "repeated", "older"],
)
def test_a_batch_is_written_once(marker: Marker, batch_id: int, offsets: tuple[str, ...], expected: str) -> None:
    assert verdict(marker, batch_id=batch_id, offsets=offsets) == expected


def test_the_same_batch_with_other_offsets_stops_the_query() -> None:
    with pytest.raises(EngineError, match="Batch 7 was committed"):
        verdict(MARKER, batch_id=7, offsets=('{"t":{"0":11}}',))
