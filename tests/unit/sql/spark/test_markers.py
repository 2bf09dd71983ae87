"""Whether a batch was written before."""

from __future__ import annotations

import pytest

from penstock.sql.errors import EngineError
from penstock.sql.spark.running.markers import Marker, verdict

MARKER = Marker(checkpoint_id="c1", batch_id=7, offsets=('{"t":{"0":10}}',))


@pytest.mark.parametrize(
    ("marker", "checkpoint_id", "batch_id", "offsets", "expected"),
    [
        (None, "c1", 0, (), "new"),
        (MARKER, "c1", 8, ('{"t":{"0":12}}',), "new"),
        (MARKER, "c1", 7, ('{"t":{"0":10}}',), "done"),
        (MARKER, "c1", 6, ('{"t":{"0":8}}',), "done"),
        (MARKER, "c2", 7, ('{"t":{"0":99}}',), "new"),
    ],
    ids=["first", "next", "repeated", "older", "rebuilt"],
)
def test_a_batch_is_written_once(
    marker: Marker | None, checkpoint_id: str, batch_id: int, offsets: tuple[str, ...], expected: str
) -> None:
    assert verdict(marker, checkpoint_id=checkpoint_id, batch_id=batch_id, offsets=offsets) == expected


def test_the_same_batch_with_other_offsets_stops_the_query() -> None:
    with pytest.raises(EngineError, match="Batch 7 was committed"):
        verdict(MARKER, checkpoint_id="c1", batch_id=7, offsets=('{"t":{"0":11}}',))
