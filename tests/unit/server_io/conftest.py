from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.server_io.fakes import Connection


@pytest.fixture
def connect() -> Iterator[Callable[..., Connection]]:
    """Make connections; at the end all are closed, and the memory they were charged for must be free again."""
    made: list[Connection] = []

    def make(*args: Any, **kwargs: Any) -> Connection:
        made.append(Connection(*args, **kwargs))
        return made[-1]

    yield make
    for connection in made:
        connection.session.close()
        assert not connection.session.output.queue
    assert all(connection.owner.budget.used == 0 for connection in made)


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    return connect()
