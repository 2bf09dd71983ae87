"""Message streams: topics opened as n bounded queues with iterators, fed in the background by one consumer.

Entry points: `MessageStreams` for threads, `AsyncMessageStreams` for asyncio. `routing` (which partition feeds which
stream) and `buffer` (one stream's queue, and what of it is finished) are plain; `driver` feeds and commits.
"""

from __future__ import annotations

from penstock.client.consumer.streams.blocking import MessageStream, MessageStreams
from penstock.client.consumer.streams.driver import AsyncMessageStream, AsyncMessageStreams

__all__ = ["AsyncMessageStream", "AsyncMessageStreams", "MessageStream", "MessageStreams"]
