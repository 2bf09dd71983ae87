"""What went wrong, as one sentence with its remedy, and the exit code that says so: for `penstock` and Kafka's tools.

`sentences()` is the text of whatever may be expected to fail: the cluster, settings, files, or what a command itself
found (`Failed`). `reported()` is put around everything that a `penstock` command does: such errors end with
`error: ...` and 1, Ctrl-C with 130, a reader that went away (`| head`) silently. Usage errors are click's, with 2.
What is none of these is a fault of ours and keeps its traceback.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from penstock.base.config.declaration import ConfigErrors
from penstock.base.errors import ErrorCode, KafkaError

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""As of a program that SIGPIPE ended."""

_ASK_FOR_AN_ACL: Final = "ask for an ACL"
REMEDIES: Final = {
    ErrorCode.UNSUPPORTED_VERSION: "`penstock cluster apis` lists what a broker serves",
    ErrorCode.INVALID_CONFIG: "`penstock configs describe KIND NAME --all --docs` shows the keys and what they take",
    ErrorCode.GROUP_ID_NOT_FOUND: "`penstock groups list` shows the groups",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`penstock topics list` shows the topics",
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists takes that for no error",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`penstock transactions list` shows them",
    **dict.fromkeys(
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        _ASK_FOR_AN_ACL,
    ),
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check sasl.mechanism and the credentials in --command-config or the profile",
}
_SAID_TWICE: Final = re.compile(r"^topic (\S+): ((?:The topic|Topic) '\1' )")
"""Our clients put the name of a topic before a broker's words, which may begin with it too."""
_COLOURS: Final = {"error": 31, "warning": 33}


class Failed(Exception):  # noqa: N818 - named for what happened
    """A command cannot do what it was asked to; the message has the remedy."""


EXPECTED: Final = (Failed, KafkaError, ConfigErrors, OSError)
"""What has a sentence. BrokenPipeError is an OSError too, and is to be caught before."""


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
        drop_output()
        sys.exit(READER_GONE)
    except EXPECTED as error:
        for each in sentences(error, REMEDIES):
            say("error", each)
        sys.exit(FAILED)


def sentences(error: Exception, remedies: Mapping[ErrorCode, str] | None = None) -> list[str]:
    """The error for people: one line for each thing that failed."""
    failures = getattr(error, "failures", None)
    if failures:
        return [_text(each, remedies) for each in failures.values()]
    if isinstance(error, KafkaError):
        return [_text(error, remedies)]
    if isinstance(error, ConfigErrors):
        return [f"setting {each}" for each in error.problems]
    if isinstance(error, OSError) and error.strerror:
        return [f"{error.filename}: {error.strerror}" if error.filename else error.strerror]
    return [str(error)]


def _text(error: KafkaError, remedies: Mapping[ErrorCode, str] | None) -> str:
    """Kafka's tools show a broker's words as they are; ours say once what they are about, and then what to do."""
    message = error.message or str(error)
    if remedies is None:
        return message
    message, remedy = _SAID_TWICE.sub(r"\2", message), remedies.get(error.code)
    if remedy is None or "penstock " in message or remedy in message:
        return message
    return f"{message.rstrip('.')} ({remedy})"


def fail(message: str) -> NoReturn:
    """End the command with one sentence."""
    raise Failed(message)


def warn(message: str) -> None:
    """Say something that does not end the command."""
    say("warning", message)


def say(word: str, message: str) -> None:
    """One line on stderr, coloured on a terminal only."""
    shown = f"\x1b[{_COLOURS[word]}m\x1b[1m{word}:\x1b[0m" if coloured(sys.stderr) else f"{word}:"
    print(f"{shown} {message}", file=sys.stderr, flush=True)


def coloured(stream: Any) -> bool:
    """Colours are for terminals, and not for those who do not want them (https://no-color.org)."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _flush_quietly() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()


def drop_output() -> None:
    """Nobody reads any more. What is buffered goes nowhere, so that the interpreter's last flush does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
