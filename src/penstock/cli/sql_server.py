"""`penstock sql-server`: streaming SQL in the foreground, until SIGTERM or Ctrl-C.

Everything heavy is imported when the server starts, so that the help is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import asyncio

    from penstock.sql.server.config import ServerConfig
    from penstock.sql.server.process import Ready


def _parse_pairs(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator or not key.strip():
            raise click.BadParameter(f"{value!r} is not of the form key=value", param=parameter)
        pairs[key.strip()] = text.strip()
    return pairs


@click.command("sql-server", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT,...", help="Brokers of the Kafka cluster.")
@click.option("--listeners", metavar="URL,...", help="Addresses of the REST interface, such as http://127.0.0.1:8088.")
@click.option("--data-dir", metavar="DIR", help="Where tables, checkpoints and Spark's logs lie; made when missing.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Properties file, such as an existing ksql-server.properties; spark.* and client keys are passed on.",
)
@click.option("--service-id", metavar="ID", help="Servers with the same id share their statements (default_).")
@click.option("--master", metavar="URL", help="Spark's master: local[N] (local[*]), spark://HOST:PORT, yarn, k8s://...")
@click.option(
    "--checkpoint-uri", metavar="URI", help="Folder of the queries' checkpoints; below the data folder by default."
)
@click.option(
    "--spark-conf", multiple=True, metavar="KEY=VALUE", callback=_parse_pairs, help="One spark.* setting; repeatable."
)
@click.option("--override", multiple=True, metavar="KEY=VALUE", callback=_parse_pairs, help="Set any key; repeatable.")
@click.option("--until-stdin-closes", is_flag=True, help="Stop when standard input ends, as it does with its writer.")
def command(
    bootstrap_server: str | None,
    listeners: str | None,
    data_dir: str | None,
    config_file: Path | None,
    service_id: str | None,
    master: str | None,
    checkpoint_uri: str | None,
    spark_conf: dict[str, str],
    override: dict[str, str],
    until_stdin_closes: bool,
) -> None:
    """Run a server for streaming SQL in the foreground.

    Statements come over ksqlDB's REST interface; `penstock sql` is a shell for it. Queries run on one Spark session,
    and read and write topics of the Kafka cluster, which may be Penstock or any other.
    """
    flags = {
        "bootstrap.servers": bootstrap_server,
        "listeners": listeners,
        "penstock.sql.data.dir": data_dir,
        "ksql.service.id": service_id,
        "penstock.sql.master": master,
        "penstock.sql.checkpoint.uri": checkpoint_uri,
    }
    for name in spark_conf:
        if not name.startswith("spark."):
            raise click.BadParameter(f"{name} does not begin with spark.", param_hint="--spark-conf")
    given = {name: value for name, value in flags.items() if value is not None}
    _run(config_file, {**override, **spark_conf, **given}, until_stdin_closes=until_stdin_closes)


def _run(config_file: Path | None, flags: dict[str, str], *, until_stdin_closes: bool) -> None:
    import logging

    from penstock.base.config.declaration import ConfigErrors
    from penstock.base.errors import KafkaError
    from penstock.base.logs import configure_logging
    from penstock.base.system import new_event_loop

    _check_installed()
    from penstock.sql.errors import SqlError
    from penstock.sql.server import config as keys

    try:
        config = keys.load_config(config_file, flags)
    except ConfigErrors as errors:
        _fail(str(errors))
    configure_logging(format=config[keys.LOG_FORMAT], level=config[keys.LOG_LEVEL])
    if logging.getLogger().level > logging.DEBUG:
        _quieten_others()
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(loop, config, until_stdin_closes=until_stdin_closes))
    except (SqlError, KafkaError, OSError) as error:
        _fail(str(error))
    finally:
        loop.close()


def _quieten_others() -> None:
    """Each client tells of every partition it begins to read; the way to Java tells, with a traceback and through the
    root logger too, of every failure that it raises to us as well.
    """
    import logging

    logging.getLogger("penstock.client").setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: "py4j" not in Path(record.pathname).parts)


async def _serve(loop: asyncio.AbstractEventLoop, config: ServerConfig, *, until_stdin_closes: bool) -> None:
    import asyncio
    import logging

    from penstock.cli.stopping import stop_on_signals
    from penstock.sql.server.process import SqlServer

    log = logging.getLogger("penstock.sql.server")
    for warning in config.warnings:
        log.warning(warning)
    stop = asyncio.Event()
    stop_on_signals(loop, stop, until_stdin_closes=until_stdin_closes)
    await SqlServer(config).run(stop, _announcer(config, log.info))


def _announcer(config: ServerConfig, tell: Callable[[str], None]) -> Callable[[Ready], None]:
    import penstock
    from penstock.sql.server import config as keys

    def announce(ready: Ready) -> None:
        urls = ", ".join(listener.url for listener in ready.listeners)
        line = (
            f"Penstock {penstock.__version__} SQL ready: {urls}, service {config[keys.SERVICE_ID]}, brokers "
            f"{config[keys.BOOTSTRAP_SERVERS]}, data in {config.data_dir} ({ready.seconds:.2f} s)"
        )
        if config[keys.LOG_FORMAT] == "json":
            # Whoever reads JSON reads every line as such.
            tell(line)
        else:
            click.echo(line)
            sys.stdout.flush()

    return announce


def _check_installed() -> None:
    import importlib.util

    missing = [
        name for name in ("pyspark", "sqlglot", "starlette", "hypercorn") if importlib.util.find_spec(name) is None
    ]
    if missing:
        _fail(f"streaming SQL needs {', '.join(missing)}: install it with pip install 'penstock[sql]'")


def _fail(message: str) -> Any:
    click.echo(f"error: {message}", err=True)
    sys.exit(1)
