"""The blocking face of parallel consumption: the same, over a blocking `Consumer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.client.consumer.blocking import Consumer
from penstock.client.consumer.parallel.driver import AsyncParallelConsumer
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.client.consumer.parallel.options import ParallelOptions


class ParallelConsumer:
    """Calls `handler(record)` in up to `workers` threads at once; see `AsyncParallelConsumer` for the options.

    ::

        with Consumer(bootstrap_servers=..., group_id="shop", enable_auto_commit=False) as consumer:
            ParallelConsumer(consumer, handle, topics=["orders"], workers=16).run()

    While it runs the consumer belongs to it. `stop()` may be called from any thread, from the handler too.
    """

    def __init__(
        self, consumer: Consumer, handler: Callable[[ConsumerRecord], Any], **options: Unpack[ParallelOptions]
    ) -> None:
        if not isinstance(consumer, Consumer):
            raise TypeError(f"consumer is a penstock.Consumer, not {consumer!r}")
        self._thread = consumer._thread
        self._core = AsyncParallelConsumer(consumer._core, handler, **options)

    def run(self) -> None:
        """Until `stop()`; raises `HandlerFailed` when a record could not be handled."""
        self._thread.run(self._core.run())

    def stop(self) -> None:
        """End the run: records with workers are finished, what is finished is committed."""
        self._thread.call_soon(self._core.stop)

    @property
    def pending(self) -> int:
        """Records taken from the consumer and not finished."""
        return self._core.pending

    @property
    def handled(self) -> int:
        """Records finished so far."""
        return self._core.handled
