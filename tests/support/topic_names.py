"""The fixture `topic`. A `conftest` imports it."""

from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of the test's own; the topic itself does not exist yet."""
    plain = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:80]
    return f"{plain}-{next(_numbers)}"
