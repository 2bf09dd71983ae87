"""`penstock serve`: one broker in the foreground, until SIGTERM or Ctrl-C.

`--ephemeral` is the same broker for tests in any language: a free port, data that go with it, and one line of JSON on
standard output that says where it listens. A test that dies must not leave it behind: with `--until-stdin-closes` the
broker ends when whoever started it does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
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

Announce = Callable[[Broker, float], None]
_ANY_FREE_PORT = "PLAINTEXT://127.0.0.1:0"

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
@click.option(
    "--ephemeral",
    is_flag=True,
    help="For tests: a free port, data in a temporary folder that is removed at the end, the development profile, and "
    'one line {"bootstrap_servers": ...} on standard output when the broker is ready.',
)
@click.option("--until-stdin-closes", is_flag=True, help="Stop when standard input ends, as it does with its writer.")
def command(
    config_file: Path | None,
    data_dir: str | None,
    listeners: str | None,
    advertised_listeners: str | None,
    override: dict[str, str],
    profile: str | None,
    ephemeral: bool,
    until_stdin_closes: bool,
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
    if not ephemeral:
        _run(config_file, flags, profile, until_stdin_closes=until_stdin_closes)
        return
    if broker_keys.LOG_DIRS.name in flags:
        raise click.UsageError(
            "--ephemeral keeps its data in a folder of its own; leave out --data-dir, or --ephemeral"
        )
    directory = tempfile.mkdtemp(prefix="penstock-ephemeral-")
    try:
        flags = {broker_keys.LISTENERS.name: _ANY_FREE_PORT, **flags, broker_keys.LOG_DIRS.name: directory}
        _run(config_file, flags, "development", until_stdin_closes=until_stdin_closes, announce=_announce_as_json)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(
    config_file: Path | None,
    flags: dict[str, str],
    profile: str | None,
    *,
    until_stdin_closes: bool,
    announce: Announce | None = None,
) -> None:
    try:
        config = load_broker_config(file=config_file, environ=os.environ, flags=flags, profile=profile)
    except ConfigErrors as errors:
        _fail(str(errors))
    as_json = config[broker_keys.PENSTOCK_LOG_FORMAT] == "json"
    configure_logging(format="json" if as_json else "text", level=config[broker_keys.PENSTOCK_LOG_LEVEL])
    for warning in config.warnings:
        log.warning(warning)
    raise_file_limit()
    announce = announce or (_announce_with_next_steps if profile == "development" else _announce)
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(loop, config, announce, until_stdin_closes=until_stdin_closes))
    except BrokerError as error:
        _fail(str(error))
    finally:
        loop.close()


async def _serve(
    loop: asyncio.AbstractEventLoop, config: BrokerConfig, announce: Announce, *, until_stdin_closes: bool
) -> None:
    stop = asyncio.Event()
    world = SystemWorld(loop, threads=config[broker_keys.PENSTOCK_IO_THREADS])
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_handler(stop, number, world.clock))
    if until_stdin_closes:
        threading.Thread(target=_wait_for_end_of_input, args=(loop, stop), name="stdin", daemon=True).start()
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


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # The descriptor and not sys.stdin, whose lock would keep the interpreter from ending.
    try:
        while os.read(0, 65536):
            pass
    except OSError:
        # It was never open.
        pass
    try:
        loop.call_soon_threadsafe(stop.set)
    except RuntimeError:
        # The broker has ended for another reason.
        pass


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
    click.echo(json.dumps(ready))
    sys.stdout.flush()


def _announce_with_next_steps(broker: Broker, seconds: float) -> None:
    _announce(broker, seconds, show_next_steps=True)


def _announce(broker: Broker, seconds: float, *, show_next_steps: bool = False) -> None:
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
    click.echo(ready)
    if show_next_steps:
        click.echo(_NEXT_STEPS.format(address=addresses[0], directory=directory))
    sys.stdout.flush()


def _fail(message: str) -> None:
    click.echo(f"error: {message}", err=True)
    sys.exit(1)
