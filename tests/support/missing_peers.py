"""What becomes of a test whose peer (a broker, client or tool of somebody else's) is not on this machine.

It is skipped, with the remedy as the reason; where nothing may be missing (`CI=true`) it fails. A `conftest` imports
the two hooks.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.cache import PeerMissingError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    except PeerMissingError as missing:
        _missing(missing)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    try:
        return (yield)
    except PeerMissingError as missing:
        _missing(missing)


def _missing(missing: PeerMissingError) -> None:
    text = f"{missing.reason}; remedy: {missing.remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
