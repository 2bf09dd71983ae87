"""The clients for asyncio: the same names as in `penstock`, with coroutines in place of blocking calls::

async with penstock.aio.Producer(bootstrap_servers="localhost:9092") as producer:
    delivery = await producer.send("orders", b"...")
    await delivery
"""

from __future__ import annotations

import penstock

_CLIENTS = {
    "Admin": "penstock.client.admin.admin",
    "Consumer": "penstock.client.consumer.consumer",
    "MessageStream": "penstock.client.consumer.streams.driver",
    "MessageStreams": "penstock.client.consumer.streams.driver",
    "ParallelConsumer": "penstock.client.consumer.parallel.driver",
    "Producer": "penstock.client.producer.producer",
}

__all__ = [name for name in penstock.__all__ if name != "__version__"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'penstock.aio' has no attribute {name!r}")
    from importlib import import_module

    home = _CLIENTS.get(name)
    value = getattr(import_module(home), f"Async{name}") if home is not None else getattr(penstock, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
