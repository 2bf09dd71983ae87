"""What went wrong, as one sentence with its remedy, and the exit code that says so.

`reported()` is put around everything that a command does: errors of the cluster, of settings and of files end with
`error: ...` and 1, Ctrl-C with 130, a reader that went away (`| head`) silently. Usage errors are click's, with 2.
What is none of these is a fault of ours and keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import click

from penstock.base.config.declaration import ConfigErrors
from penstock.base.errors import ErrorCode, KafkaError

FAILED: Final = 1
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""As of a program that SIGPIPE ended."""

_REMEDIES: Final = {
    ErrorCode.UNSUPPORTED_VERSION: "`penstock cluster apis` lists what a broker serves",
    ErrorCode.GROUP_ID_NOT_FOUND: "`penstock groups list` shows the groups",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`penstock topics list` shows the topics",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`penstock transactions list` shows them",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check sasl.mechanism and the credentials in --command-config or the profile",
}


class Failure(click.ClickException):
    """A command cannot do what it was asked to; the message has the remedy."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        warn_or_fail("error", self.message)


@contextmanager
def reported() -> Iterator[None]:
    """Turn the errors of what is done inside into a sentence and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        _flush_quietly()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _leave_reader()
    except (KafkaError, ConfigErrors, OSError) as error:
        for each in sentences(error):
            warn_or_fail("error", each)
        sys.exit(FAILED)


def sentences(error: Exception) -> list[str]:
    """The error for people: one line for each thing that failed."""
    failures = getattr(error, "failures", None)
    if failures:
        return [_with_remedy(each) for each in failures.values()]
    if isinstance(error, KafkaError):
        return [_with_remedy(error)]
    if isinstance(error, ConfigErrors):
        return [f"setting {each}" for each in error.problems]
    if isinstance(error, OSError) and error.strerror:
        return [f"{error.filename}: {error.strerror}" if error.filename else error.strerror]
    return [str(error)]


def _with_remedy(error: KafkaError) -> str:
    message = error.message.rstrip(".")
    remedy = _REMEDIES.get(error.code)
    return message if remedy is None or "penstock " in message else f"{message} ({remedy})"


def fail(message: str) -> NoReturn:
    """End the command with one sentence."""
    raise Failure(message)


def warn(message: str) -> None:
    """Say something that does not end the command."""
    warn_or_fail("warning", message)


def warn_or_fail(word: str, message: str) -> None:
    """One line on stderr, coloured on a terminal only; a newline that a server put into its message does no harm."""
    colour = {"error": "red", "warning": "yellow"}[word]
    shown = click.style(f"{word}:", fg=colour, bold=True) if coloured(sys.stderr) else f"{word}:"
    click.echo(f"{shown} {message}", err=True, color=coloured(sys.stderr))


def coloured(stream: Any) -> bool:
    """Colours are for terminals, and not for those who do not want them (https://no-color.org)."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _flush_quietly() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _leave_reader()


def _leave_reader() -> NoReturn:
    """Nobody reads any more. What is buffered goes nowhere, so that the interpreter's last flush does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(READER_GONE)
