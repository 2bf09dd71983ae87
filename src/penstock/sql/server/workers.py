"""Threads in which the engine's blocking calls are made, so that the event loop never waits for one.

Statements and the reading of rows have threads of their own: a hundred open push queries must not keep a statement
waiting. A query that nobody has a thread for is refused rather than left hanging.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

STATEMENT_THREADS = 16
QUERY_THREADS = 160


class Workers:
    def __init__(self) -> None:
        self._statements = ThreadPoolExecutor(STATEMENT_THREADS, thread_name_prefix="sql-statement")
        self._queries = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="sql-query")

    async def statement(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._statements, partial(work, *args, **kwargs))

    async def query(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._queries, partial(work, *args, **kwargs))

    def later(self, work: Callable[[], object]) -> None:
        """Do it without anybody waiting, as for a client that has gone."""
        self._statements.submit(work)

    def close(self) -> None:
        """Waits for what is under way."""
        self._queries.shutdown(wait=True, cancel_futures=True)
        self._statements.shutdown(wait=True)
