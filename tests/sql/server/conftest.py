"""One engine behind one REST server for all of these tests, whose streams therefore have names of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from penstock.sql.server.service import EngineService
from tests.support.missing_peers import pytest_fixture_setup, pytest_runtest_call  # noqa: F401 - hooks
from tests.unit.sql.server.fakes import serving


@pytest.fixture(scope="package")
def url(new_parts: Any) -> Iterator[str]:
    with ExitStack() as stack:
        parts = new_parts(stack)
        service = EngineService(parts.kafka.service_id, {"auto.offset.reset": "earliest"})
        service.use(parts)
        yield stack.enter_context(serving(service))
