"""`penstock serve`: one broker in the foreground, until SIGTERM or Ctrl-C.

`--ephemeral` is the same broker for tests in any language: a free port, data that go with it, and one line of JSON on
standard output that says where it listens. A test that dies must not leave it behind: with `--until-stdin-closes` the
broker ends when whoever started it does.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

_ANY_FREE_PORT = "PLAINTEXT://127.0.0.1:0"


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
    named = {"log.dirs": data_dir, "listeners": listeners, "advertised.listeners": advertised_listeners}
    flags = override | {key: value for key, value in named.items() if value is not None}
    if ephemeral and "log.dirs" in flags:
        raise click.UsageError(
            "--ephemeral keeps its data in a folder of its own; leave out --data-dir, or --ephemeral"
        )
    from penstock.cli.serving import run

    if not ephemeral:
        run(config_file, flags, profile, until_stdin_closes=until_stdin_closes)
        return
    directory = tempfile.mkdtemp(prefix="penstock-ephemeral-")
    try:
        flags = {"listeners": _ANY_FREE_PORT, **flags, "log.dirs": directory}
        run(config_file, flags, "development", until_stdin_closes=until_stdin_closes, announces_as_json=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
