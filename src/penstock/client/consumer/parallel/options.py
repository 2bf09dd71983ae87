"""The options of parallel consumption as typed keywords. A test keeps them equal to `AsyncParallelConsumer`'s."""

from __future__ import annotations

from typing import Literal, TypedDict

from penstock.client.consumer.arguments import Topics
from penstock.client.consumer.parallel.policy import OnFailure
from penstock.client.consumer.parallel.scheduling import Order


class ParallelOptions(TypedDict, total=False):
    topics: Topics | None
    workers: int
    order: Literal["key", "partition", "unordered"] | Order
    executor: Literal["threads", "tasks"] | None
    retries: int
    retry_backoff_ms: float
    on_failure: OnFailure
    pending_max: int
    commit_interval_ms: float
    drain_timeout_ms: float
