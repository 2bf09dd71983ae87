"""One Spark session for all SQL tests of a process; a broker and a service of its own for whoever asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.sql.server.config import load_config
from penstock.sql.server.parts import Parts, build_parts
from penstock.sql.spark.driver.session import SessionSettings, start_session, stop_session
from penstock.testing import EphemeralBroker

BROKER = {"log.retention.ms": "-1", "auto.create.topics.enable": "false"}
"""Test data is from 1970, and would be deleted for its age."""

NewParts = Callable[..., Parts]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_session(SessionSettings(data_dir=tmp_path_factory.mktemp("spark"), master="local[2]"))
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def new_parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> NewParts:
    """Makes SQL servers without HTTP, each with a broker of its own, or with the one that is given."""
    numbers = itertools.count(1)

    def make(
        stack: ExitStack,
        bootstrap_servers: str | None = None,
        data_dir: Path | None = None,
        service_id: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Parts:
        if bootstrap_servers is None:
            bootstrap_servers = stack.enter_context(EphemeralBroker(BROKER)).bootstrap_servers
        flags = {
            "bootstrap.servers": bootstrap_servers,
            "ksql.service.id": service_id or f"test{next(numbers)}_",
            "penstock.sql.data.dir": str(data_dir or tmp_path_factory.mktemp("sql")),
            **(settings or {}),
        }
        parts = build_parts(load_config(None, flags), spark)
        stack.callback(parts.close)
        return parts

    return make
