"""`penstock up`: a broker and a SQL server in the foreground, with one log.

Both are processes of their own, as they would be anywhere else; each line of theirs is shown with its writer's name.
The SQL server stops first, because its last words go to the broker. Both end with this command, however it ends: their
standard input is a pipe that closes with it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import click

from penstock.cli.failures import coloured

STOP_TIMEOUT_S: Final = 60.0
_PORT: Final = click.IntRange(1, 65535)
_COLOURS: Final = {"broker": "cyan", "sql": "magenta"}
_WIDTH: Final = max(map(len, _COLOURS))
_NEXT_STEPS: Final = """
  In another terminal:
    penstock sql {url}          # a shell for SQL; HELP; lists what it knows
    penstock topics list -b {broker}
  Ctrl-C stops both; the data stays in {directory}.
"""


@dataclass(slots=True)
class Child:
    """A process whose lines are shown; `ready` is set when one of them says so, or when there will be no more."""

    name: str
    process: subprocess.Popen[str]
    ready: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@click.command("up", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--data-dir", default="penstock-data", show_default=True, metavar="DIR", help="Where the data lies.")
@click.option("--port", type=_PORT, default=9092, show_default=True, metavar="PORT", help="Port of the broker.")
@click.option("--sql-port", type=_PORT, default=8088, show_default=True, metavar="PORT", help="Port of the SQL server.")
@click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="One spark.* setting; repeatable.")
def command(data_dir: str, port: int, sql_port: int, spark_conf: tuple[str, ...]) -> None:
    """Run a broker and a SQL server in the foreground."""
    directory = Path(data_dir).absolute()
    broker_address, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{sql_port}"
    serve = ["serve", "--profile", "development", "--data-dir", str(directory / "broker")]
    serve += ["--listeners", f"PLAINTEXT://{broker_address}"]
    sql = ["sql-server", "-b", broker_address, "--listeners", url, "--data-dir", str(directory / "sql")]
    for each in spark_conf:
        sql += ["--spark-conf", each]
    # Until the children are started and can be stopped, a signal simply ends this command, and with it the pipes.
    children: list[Child] = []
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        for name, arguments in (("broker", serve), ("sql", sql)):
            child = _start(name, arguments, over)
            children.append(child)
            _wait_until_ready(child, over)
        if not over.is_set():
            click.echo(_NEXT_STEPS.format(url=url, broker=broker_address, directory=directory))
        over.wait()
    finally:
        codes = [child.stop() for child in reversed(children)]
    sys.exit(0 if not any(codes) else 1)


def _start(name: str, arguments: list[str], over: threading.Event) -> Child:
    # A session of its own: Ctrl-C of the terminal reaches this command only, which stops the children in order.
    process = subprocess.Popen(
        [sys.executable, "-c", "from penstock.cli.main import main; main()", *arguments, "--until-stdin-closes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        bufsize=1,
        start_new_session=True,
    )
    child = Child(name, process)
    assert process.stdout is not None
    threading.Thread(target=_show, args=(child, process.stdout, over), name=f"{name} lines", daemon=True).start()
    return child


def _show(child: Child, lines: IO[str], over: threading.Event) -> None:
    prefix = f"{child.name:<{_WIDTH}} |"
    if coloured(sys.stdout):
        prefix = click.style(prefix, fg=_COLOURS[child.name])
    for line in lines:
        if " ready: " in line:
            child.ready.set()
        click.echo(f"{prefix} {line.rstrip()}")
        sys.stdout.flush()
    child.ready.set()
    if not over.is_set():
        click.echo(f"{prefix} has ended; stopping", err=True)
        over.set()


def _wait_until_ready(child: Child, over: threading.Event) -> None:
    """Until it says so, or everything is over."""
    while not over.is_set() and not child.ready.wait(0.1):
        pass
