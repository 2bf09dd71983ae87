"""Parallel consumption: one consumer feeds many workers, order kept per key, commits behind what is finished.

Entry points: `ParallelConsumer` (threads, over a blocking consumer) and `AsyncParallelConsumer` (tasks or threads, over
an asyncio one). `frontier` and `scheduling` are the plain synchronous core, `workers` calls the handler, `policy` says
what its failure means, `driver` polls and commits.
"""

from __future__ import annotations

from penstock.client.consumer.parallel.blocking import ParallelConsumer
from penstock.client.consumer.parallel.driver import AsyncParallelConsumer
from penstock.client.consumer.parallel.policy import HandlerFailed
from penstock.client.consumer.parallel.scheduling import Order

__all__ = ["AsyncParallelConsumer", "HandlerFailed", "Order", "ParallelConsumer"]
