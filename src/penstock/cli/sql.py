"""`penstock sql`: a shell for streaming SQL, interactive or for scripts."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from penstock.sql.shell.output import TextOutput
    from penstock.sql.shell.rest import RestClient
    from penstock.sql.shell.session import Session

URL_VARIABLE = "PENSTOCK_SQL_URL"
FAILED = 1


@click.command("sql", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("url", required=False)
@click.option("-e", "--execute", "texts", multiple=True, metavar="STATEMENTS", help="Run these and leave; repeatable.")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE", help="Run a script and leave; repeatable.")
@click.option("-o", "--output", "form", type=click.Choice(["table", "json"]), help="What to print; a table by default.")
@click.option(
    "-s", "--set", "settings", multiple=True, metavar="NAME=VALUE", help="As SET 'NAME' = 'VALUE'; repeatable."
)
@click.option(
    "-d", "--define", "variables", multiple=True, metavar="NAME=VALUE", help="As DEFINE NAME = 'VALUE'; repeatable."
)
def command(
    url: str | None,
    texts: tuple[str, ...],
    files: tuple[str, ...],
    form: str | None,
    settings: tuple[str, ...],
    variables: tuple[str, ...],
) -> None:
    """A shell for streaming SQL.

    URL is that of a SQL server (http://localhost:8088, or PENSTOCK_SQL_URL). Without -e and -f statements come from
    the terminal, or from standard input if that is none. The first statement that fails ends a script with exit code 1.
    """
    from penstock.sql.shell.output import TextOutput
    from penstock.sql.shell.rest import DEFAULT_URL, RestClient, ShellError
    from penstock.sql.shell.session import Left, Session, read_script

    interactive = not texts and not files and sys.stdin.isatty()
    output = TextOutput(form="json" if form == "json" else "table", interactive=interactive)
    try:
        client = RestClient(url or os.environ.get(URL_VARIABLE) or DEFAULT_URL)
        session = Session(client, output)
        session.properties.update(map(_pair, settings))
        session.variables.update(map(_pair, variables))
        if interactive:
            _interactive(client, output, session)
            return
        scripts = [*map(read_script, files), *texts]
        for script in scripts or [sys.stdin.read()]:
            session.run(script)
    except Left:
        pass
    except ShellError as error:
        output.error(str(error))
        sys.exit(FAILED)


def _interactive(client: RestClient, output: TextOutput, session: Session) -> None:
    from penstock.sql.shell.prompt import run_prompt

    info = client.info()
    output.say(f"Connected to {client.url}: Penstock {info['version']}, service {info['ksqlServiceId']}.")
    output.say("Statements end with a semicolon; HELP; tells more; Ctrl-D leaves.")
    run_prompt(client, output, session)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise click.UsageError(f"{text}: not of the form NAME=VALUE")
    return name.strip(), value
