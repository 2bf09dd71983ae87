"""Every flag that Kafka's help lists is taken by our tool, or refused by its name with the reason."""

from __future__ import annotations

import importlib
import re

import pytest

from penstock.cli.kafka.parsing import UsageError, parse
from penstock.cli.kafka.tool import HELP, VERSION, Tool
from tests.compat.kafka_tools import JAVA_CLASSES, java, ours

COMMANDS = {
    "transactions": ("list", "describe", "describe-producers", "abort", "find-hanging", "forceTerminateTransaction"),
    "features": ("describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies"),
}
"""Of the tools whose first word is one; each command has a help of its own."""
_FLAG = re.compile(r"^ {0,4}(?:-\w, )?--([a-zA-Z][\w.-]*)", re.MULTILINE)


def tool_of(name: str) -> Tool:
    found = importlib.import_module(f"penstock.cli.kafka.{name}").TOOL
    assert isinstance(found, Tool)
    return found


@pytest.mark.parametrize("name", list(JAVA_CLASSES))
def test_every_flag_of_kafka_is_known(name: str) -> None:
    shown = java(name, "--help")
    flags = set(_FLAG.findall(shown.out + shown.err))
    assert len(flags) >= 4, shown
    for command in COMMANDS.get(name, ()):
        more = java(name, command, "--help")
        flags |= set(_FLAG.findall(more.out + more.err))
    tool = tool_of(name)
    known = {option.name: option for option in (*tool.options, HELP, VERSION)}
    assert not flags - known.keys(), "not known here"
    for option in known.values():
        if option.refused:
            with pytest.raises(UsageError, match=f"--{option.name} is not supported here: .{{10}}"):
                parse(known.values(), [f"--{option.name}", "x"])


@pytest.mark.parametrize("name", list(JAVA_CLASSES))
def test_help_and_usage(name: str) -> None:
    shown = ours(name, "--help")
    assert shown.code == 0
    assert set(re.findall(r"^--([\w.-]+)", shown.out, re.MULTILINE)) == {
        option.name for option in (*tool_of(name).options, HELP, VERSION)
    }
    assert max(len(line) for line in shown.out.splitlines() if line.startswith(("--", "  "))) <= 110
    assert ours(name).code == 2
    unknown = ours(name, "--nonsense")
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("nonsense is not a recognized option")


def test_the_command_line_is_read_without_the_clients() -> None:
    import subprocess
    import sys

    from tests.compat.kafka_tools import ROOT

    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r});"
        f"from penstock.cli.kafka import {', '.join(JAVA_CLASSES)};"
        "print([name for name in sys.modules if name.startswith(('penstock.client', 'asyncio', 'click', 'kazoo'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout == "[]\n"
