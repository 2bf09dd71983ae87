"""A secured Apache Kafka and pools to its listeners, for the tests of TLS and SASL."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from penstock.base.system import SystemWorld
from penstock.network.address import Address
from penstock.network.errors import NetworkError
from penstock.network.observer import NetworkObserver
from penstock.network.pool import ChannelPool
from penstock.network.security import SecuritySettings, connection_security
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest
from tests.support.secured import USERS, SecuredKafka

TIMEOUT_S = 30.0


@pytest.fixture(scope="module", name="kafka")
def start_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    broker = SecuredKafka(tmp_path_factory.mktemp("secured"))
    broker.start()
    yield broker
    broker.kill()


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test on asyncio's loop and on uvloop: they tell failures of TLS in different ways."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(test(*arguments, **named))

    return run


class Told(NetworkObserver):
    def __init__(self) -> None:
        self.prolonged = asyncio.Event()
        self.prolongations = 0
        self.closings: list[NetworkError] = []
        self.answers = 0

    def authenticated_again(self, node: str, seconds: float) -> None:
        self.prolongations += 1
        self.prolonged.set()

    def closed(self, node: str, reason: NetworkError) -> None:
        self.closings.append(reason)

    def answered(self, node: str, api_key: int, seconds: float, size: int) -> None:
        self.answers += 1


@asynccontextmanager
async def pool_to(
    kafka: SecuredKafka, listener: str, *, observer: NetworkObserver | None = None, host: str = "127.0.0.1", **keys: Any
) -> AsyncIterator[ChannelPool]:
    """A pool whose node 1 is the given listener; keys are Kafka's with underscores."""
    port = kafka.port if listener == "PLAINTEXT" else kafka.ports[listener]
    world = SystemWorld(asyncio.get_running_loop(), threads=1)
    ports = NetworkPorts(network=world.network, clock=world.clock, tasks=world.tasks, rng=random.Random(1))
    settings = SecuritySettings.of({name.replace("_", "."): value for name, value in keys.items()})
    pool = ChannelPool(
        endpoints=lambda _: Address(host, port),
        ports=ports,
        settings=NetworkSettings(client_id="secure"),
        security=connection_security(settings, ports),
        observer=observer,
    )
    try:
        yield pool
    finally:
        await pool.close()
        await world.close()


async def ask(pool: ChannelPool) -> Any:
    return await asyncio.wait_for(pool.send(1, ApiKey.METADATA, MetadataRequest(topics=[])), TIMEOUT_S)


async def ask_for_ever(pool: ChannelPool) -> None:
    while True:
        await ask(pool)


async def check_works(kafka: SecuredKafka, listener: str, **keys: Any) -> None:
    async with pool_to(kafka, listener, **keys) as pool:
        assert (await ask(pool)).brokers


async def refusal(kafka: SecuredKafka, listener: str, **keys: Any) -> NetworkError:
    """What comes of it, within the time."""
    async with pool_to(kafka, listener, **keys) as pool:
        with pytest.raises(NetworkError) as raised:
            await ask(pool)
        return raised.value


def trust(kafka: SecuredKafka) -> dict[str, str]:
    return {"ssl_truststore_location": str(kafka.authority.certificate)}


def sasl(mechanism: str, username: str = "alice", password: str | None = None) -> dict[str, str]:
    password = USERS.get(username, "") if password is None else password
    return {"sasl_mechanism": mechanism, "sasl_username": username, "sasl_password": password}


def oauth(**options: Any) -> dict[str, Any]:
    return {"sasl_mechanism": "OAUTHBEARER", **options}
