"""The same clients for asyncio: one task produces, another one consumes."""

from __future__ import annotations

import asyncio

from common import arguments
from penstock import aio


async def produce(bootstrap: str, topic: str) -> None:
    async with aio.Producer(bootstrap_servers=bootstrap, value_serializer="json") as producer:
        # `send` waits only while there is no room; its delivery is awaited when the place of the record matters.
        deliveries = [await producer.send(topic, {"number": number}) for number in range(5)]
        for delivery in deliveries:
            written = await delivery
            print(f"written at offset {written.offset}")


async def consume(bootstrap: str, topic: str, group: str) -> None:
    async with aio.Consumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", value_deserializer="json"
    ) as consumer:
        consumer.subscribe([topic])
        async for record in consumer:
            print(f"read {record.value}")
            if record.value["number"] == 4:
                return


async def run(bootstrap: str, topic: str, group: str) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(produce(bootstrap, topic))
        tasks.create_task(consume(bootstrap, topic, group))


def main() -> None:
    args = arguments(__doc__, topic="asyncio", group="asyncio")
    asyncio.run(run(args.bootstrap_server, args.topic, args.group))


if __name__ == "__main__":
    main()
