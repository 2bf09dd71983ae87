"""What every tool has in common: its help, its version, how it fails and with which code it exits.

0 is success; also of `--help`. 1 is everything that went wrong, and 2 a command line that makes no sense, as with
`penstock` itself (Kafka's tools end with 1 for both). Ctrl-C is 130, and a reader that went away (`| head`) is no
failure.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from penstock.cli.failures import EXPECTED, FAILED, INTERRUPTED, USAGE, drop_output, sentences
from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, parse

HELP = flag("help", "Print usage information.", short="h")
VERSION = flag("version", "Display the version.", short="v")
BOOTSTRAP = Option("bootstrap-server", "The servers to connect to, as host:port,host:port.", metavar="server")
COMMAND_CONFIG = Option("command-config", "Properties file with the client's settings.", metavar="file")
ZOOKEEPER = Option(
    "zookeeper",
    "Of older command lines: the ZooKeeper in which the brokers are registered. Use --bootstrap-server.",
    metavar="host:port",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    about: str
    options: tuple[Option, ...]
    run: Callable[[Parsed], int | None]
    failure_prefix: str = ""
    """How Kafka's tool begins its messages: `Error while executing topic command : `."""
    failures_on_stdout: bool = False
    words: str = ""
    """What the words that are no options mean; without it they are ignored, which is said."""


def run_tool(tool: Tool, arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point: runs the tool with the process's arguments and exits."""
    code = exit_code(tool, sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    sys.exit(code)


def exit_code(tool: Tool, arguments: Sequence[str]) -> int:
    try:
        return _run(tool, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return 0
    except UsageError as error:
        return _usage(tool, str(error))
    except EXPECTED as error:
        return _failed(tool, "; ".join(sentences(error)))


def _run(tool: Tool, arguments: Sequence[str]) -> int:
    options = (*tool.options, HELP, VERSION)
    if not arguments:
        _show_help(tool, options, sys.stderr.write)
        return USAGE
    # Help is given even if the rest of the line makes no sense.
    if any(each in ("--help", "-help", "-h") for each in arguments):
        _show_help(tool, options, sys.stdout.write)
        return 0
    parsed = parse(options, arguments)
    if parsed.has("version"):
        from penstock import __version__

        print(f"penstock {__version__}")
        return 0
    if parsed.words and not tool.words:
        print(f"Ignored, since they belong to no option: {' '.join(parsed.words)}", file=sys.stderr)
    return tool.run(parsed) or 0


def _usage(tool: Tool, message: str) -> int:
    print(f"{message}\nSee `{tool.name} --help`.", file=sys.stderr)
    return USAGE


def _failed(tool: Tool, message: str) -> int:
    print(f"{tool.failure_prefix}{message}", file=sys.stdout if tool.failures_on_stdout else sys.stderr)
    return FAILED


def _show_help(tool: Tool, options: Sequence[Option], write: Callable[[str], object]) -> None:
    write(f"{tool.about}\nUsage: {tool.name} [options]{' ' + tool.words if tool.words else ''}\n\n")
    for option in sorted(options, key=lambda each: each.name):
        write(_help_lines(option))


def _help_lines(option: Option) -> str:
    shape = {
        Takes.NOTHING: "",
        Takes.VALUE: f" <{option.metavar}>",
        Takes.MAYBE: f" [{option.metavar}]",
        Takes.SEVERAL: f" <{option.metavar}> ...",
    }[option.takes]
    head = f"--{option.name}{shape}"
    doc = f"Not supported: {option.refused}" if option.refused else option.doc
    if option.default is not None:
        doc += f" (default: {option.default})"
    lines = textwrap.wrap(doc, 66) or [""]
    if len(head) > 38:
        lines.insert(0, "")
    return "".join(f"{head if number == 0 else '':<40}{line}\n" for number, line in enumerate(lines))
