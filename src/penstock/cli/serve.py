"""`penstock serve`: one broker in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import penstock
from penstock.base.config import broker_keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ConfigErrors
from penstock.base.config.listeners import format_address
from penstock.base.config.loading import load_broker_config
from penstock.base.logs import configure_logging
from penstock.base.ports import Clock
from penstock.base.system import SystemWorld, new_event_loop
from penstock.server.broker import Broker, BrokerError
from penstock.server.file_limit import raise_file_limit

log = logging.getLogger(__name__)

_NEXT_STEPS = """
  Any Kafka client works; nothing needs to be created first. In another terminal, for example:
    kcat -P -b {address} -t greetings         # type lines, Ctrl-D ends
    kcat -C -b {address} -t greetings -e      # reads them back
  Ctrl-C stops the broker; the data stays in {directory}.
"""


def _parse_override(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator or not key.strip():
            raise click.BadParameter(f"{value!r} is not of the form key=value")
        overrides[key.strip()] = text.strip()
    return overrides


@click.command("serve", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Properties file with Kafka's keys, such as an existing server.properties.",
)
@click.option("--data-dir", metavar="DIR", help="Where the data lies (sets log.dirs); made when it is missing.")
@click.option("--listeners", metavar="LIST", help="Addresses to listen on, such as PLAINTEXT://127.0.0.1:9092.")
@click.option("--advertised-listeners", metavar="LIST", help="Addresses that clients are told to connect to.")
@click.option(
    "--override", multiple=True, metavar="KEY=VALUE", callback=_parse_override, help="Set one key; repeatable."
)
@click.option(
    "--profile",
    type=click.Choice(["development"]),
    help="Defaults for a laptop: shorter waits. Everything set elsewhere wins over it.",
)
def command(
    config_file: Path | None,
    data_dir: str | None,
    listeners: str | None,
    advertised_listeners: str | None,
    override: dict[str, str],
    profile: str | None,
) -> None:
    """Run a broker in the foreground.

    Settings come from the file, then KAFKA_* environment variables (KAFKA_NUM_PARTITIONS is num.partitions), then these
    options; the later wins. Without any, the broker listens on port 9092 and keeps its data in /tmp/kafka-logs, as
    Kafka does.
    """
    if data_dir is not None and not data_dir.strip():
        raise click.BadParameter("the directory has no name", param_hint="--data-dir")
    flags = dict(override)
    named = {
        broker_keys.LOG_DIRS.name: data_dir,
        broker_keys.LISTENERS.name: listeners,
        broker_keys.ADVERTISED_LISTENERS.name: advertised_listeners,
    }
    flags.update({key: value for key, value in named.items() if value is not None})
    try:
        config = load_broker_config(file=config_file, environ=os.environ, flags=flags, profile=profile)
    except ConfigErrors as errors:
        _fail(str(errors))
    as_json = config[broker_keys.PENSTOCK_LOG_FORMAT] == "json"
    configure_logging(format="json" if as_json else "text", level=config[broker_keys.PENSTOCK_LOG_LEVEL])
    for warning in config.warnings:
        log.warning(warning)
    raise_file_limit()
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(loop, config, show_next_steps=profile == "development"))
    except BrokerError as error:
        _fail(str(error))
    finally:
        loop.close()


async def _serve(loop: asyncio.AbstractEventLoop, config: BrokerConfig, *, show_next_steps: bool) -> None:
    stop = asyncio.Event()
    world = SystemWorld(loop, threads=config[broker_keys.PENSTOCK_IO_THREADS])
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_handler(stop, number, world.clock))
    broker = Broker(config, world, random.SystemRandom())
    started = world.clock.monotonic()
    try:
        await broker.start()
        _announce(broker, world.clock.monotonic() - started, show_next_steps=show_next_steps)
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


def _stop_handler(stop: asyncio.Event, number: signal.Signals, clock: Clock) -> Callable[[], Any]:
    """The first signal stops cleanly. A later Ctrl-C means that somebody does not want to wait; recovery copes.

    A signal to a whole process group can arrive twice at nearly the same time, so only a second thought counts.
    """
    asked_at = 0.0

    def stop_or_exit() -> None:
        nonlocal asked_at
        now = clock.monotonic()
        if not stop.is_set():
            asked_at = now
            stop.set()
        elif number is signal.SIGINT and now - asked_at > 1:
            os._exit(130)

    return stop_or_exit


def _announce(broker: Broker, seconds: float, *, show_next_steps: bool) -> None:
    addresses = [format_address(endpoint.host, endpoint.port) for endpoint in broker.endpoints]
    directory = ", ".join(broker.log_directories)
    ready = (
        f"Penstock {penstock.__version__} ready: broker {broker.node_id} on {', '.join(addresses)}, "
        f"data in {directory} ({seconds:.2f} s)"
    )
    if broker.config[broker_keys.PENSTOCK_LOG_FORMAT] == "json":
        # Whoever reads JSON reads every line as such.
        log.info(ready)
        return
    click.echo(ready)
    if show_next_steps:
        click.echo(_NEXT_STEPS.format(address=addresses[0], directory=directory))
    sys.stdout.flush()


def _fail(message: str) -> None:
    click.echo(f"error: {message}", err=True)
    sys.exit(1)
