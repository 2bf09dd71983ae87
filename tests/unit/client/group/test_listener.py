from __future__ import annotations

from typing import Any

import pytest

from penstock.client.consumer.listener import RebalanceListener, make_listener
from penstock.client.errors import InvalidState


def test_nothing_to_tell() -> None:
    assert make_listener() is None


def test_callables_and_mappings() -> None:
    heard: list[tuple[str, Any]] = []
    by_keyword = make_listener(on_revoke=lambda _consumer, partitions: heard.append(("revoked", partitions)))
    assert by_keyword is not None
    assert by_keyword.on_assigned is None
    # Without one of its own, partitions that are lost count as revoked.
    assert by_keyword.on_lost is not None
    by_keyword.on_lost(None, [1])
    assert heard == [("revoked", [1])]
    by_mapping = make_listener({"on_assign": print, "on_lost": repr})
    assert by_mapping is not None
    assert (by_mapping.on_assigned, by_mapping.on_revoked, by_mapping.on_lost) == (print, None, repr)


def test_objects() -> None:
    class Mine(RebalanceListener):
        def on_revoked(self, consumer: Any, partitions: Any) -> str:
            return f"revoked {partitions}"

    made = make_listener(Mine())
    assert made is not None
    assert made.on_lost is not None
    assert made.on_lost(None, [2]) == "revoked [2]"
    assert make_listener(made) is made


@pytest.mark.parametrize("wrong", [object(), {}, {"on_assign": 1}])
def test_what_is_no_listener(wrong: object) -> None:
    with pytest.raises(InvalidState):
        make_listener(wrong)


def test_both_ways_at_once() -> None:
    with pytest.raises(InvalidState, match="not both"):
        make_listener(RebalanceListener(), on_assign=print)
