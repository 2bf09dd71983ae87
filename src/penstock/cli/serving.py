"""A broker in the foreground: its settings, its signals, and how it says that it is ready.

Apart from the command `penstock serve`, so that its help does not import a broker.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import random
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import penstock
from penstock.base.config import broker_keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ConfigErrors
from penstock.base.config.listeners import format_address
from penstock.base.config.loading import load_broker_config
from penstock.base.logs import configure_logging
from penstock.base.system import SystemWorld, new_event_loop
from penstock.cli.failures import fail
from penstock.cli.stopping import stop_on_signals
from penstock.server.broker import Broker, BrokerError
from penstock.server.file_limit import raise_file_limit

log = logging.getLogger(__name__)

Announce = Callable[[Broker, float], None]

_NEXT_STEPS = """
  Any Kafka client works; nothing needs to be created first. In another terminal, for example:
    penstock produce greetings -b {address}       # type lines, Ctrl-D ends
    penstock consume greetings -b {address} -e    # reads them back
  Ctrl-C stops the broker; the data stays in {directory}.
"""


def run(
    config_file: Path | None,
    flags: Mapping[str, str],
    profile: str | None,
    *,
    until_stdin_closes: bool,
    announces_as_json: bool = False,
) -> None:
    """Serve until a signal, or the end of standard input, stops it."""
    try:
        config = load_broker_config(file=config_file, environ=os.environ, flags=flags, profile=profile)
    except ConfigErrors as errors:
        fail(str(errors))
    as_json = config[broker_keys.PENSTOCK_LOG_FORMAT] == "json"
    configure_logging(format="json" if as_json else "text", level=config[broker_keys.PENSTOCK_LOG_LEVEL])
    for warning in config.warnings:
        log.warning(warning)
    raise_file_limit()
    announce = _announce_as_json if announces_as_json else partial(_announce, shows_next_steps=profile == "development")
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(loop, config, announce, until_stdin_closes=until_stdin_closes))
    except BrokerError as error:
        fail(str(error))
    finally:
        loop.close()


async def _serve(
    loop: asyncio.AbstractEventLoop, config: BrokerConfig, announce: Announce, *, until_stdin_closes: bool
) -> None:
    stop = asyncio.Event()
    world = SystemWorld(loop, threads=config[broker_keys.PENSTOCK_IO_THREADS])
    stop_on_signals(loop, stop, until_stdin_closes=until_stdin_closes)
    broker = Broker(config, world, random.SystemRandom())
    started = world.clock.monotonic()
    try:
        await broker.start()
        announce(broker, world.clock.monotonic() - started)
        # What the start has built lives as long as the broker: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        await asyncio.wait((asyncio.ensure_future(stop.wait()), broker.failed), return_when=asyncio.FIRST_COMPLETED)
        log.info("stopping")
    finally:
        await broker.stop()
        await world.close()
    if broker.failed.done():
        raise BrokerError(broker.failed.result())


def _addresses(broker: Broker) -> list[str]:
    return [format_address(endpoint.host, endpoint.port) for endpoint in broker.endpoints]


def _announce_as_json(broker: Broker, seconds: float) -> None:
    ready = {
        "bootstrap_servers": ",".join(_addresses(broker)),
        "port": broker.endpoints[0].port,
        "pid": os.getpid(),
        "data_directory": broker.log_directories[0],
        "started_in_seconds": round(seconds, 3),
    }
    print(json.dumps(ready))
    sys.stdout.flush()


def _announce(broker: Broker, seconds: float, *, shows_next_steps: bool) -> None:
    addresses = _addresses(broker)
    directory = ", ".join(broker.log_directories)
    ready = (
        f"Penstock {penstock.__version__} ready: broker {broker.node_id} on {', '.join(addresses)}, "
        f"data in {directory} ({seconds:.2f} s)"
    )
    if broker.config[broker_keys.PENSTOCK_LOG_FORMAT] == "json":
        # Whoever reads JSON reads every line as such.
        log.info(ready)
        return
    print(ready)
    if shows_next_steps:
        print(_NEXT_STEPS.format(address=addresses[0], directory=directory))
    sys.stdout.flush()
