"""Data files of statements: blocks with an empty line between them, each a statement, `----`, and what it must give.

`SQL_TESTS_REWRITE=1` writes the answers that are given now into the files, to be read before they are believed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Block:
    statement: str
    expected: str


def read_blocks(path: Path) -> list[Block]:
    blocks = [block.strip("\n") for block in path.read_text().split("\n\n") if "\n----" in block]
    parts = [block.split("\n----", 1) for block in blocks]
    return [Block(statement.strip(), expected.strip("\n")) for statement, expected in parts]


def parameters(folder: Path, answer: Callable[[str], str]) -> list[Any]:
    """The blocks of all files of a folder, for `pytest.mark.parametrize`."""
    paths = sorted(folder.glob("*.test"))
    if os.environ.get("SQL_TESTS_REWRITE"):
        for path in paths:
            texts = [f"{block.statement}\n----\n{answer(block.statement)}" for block in read_blocks(path)]
            path.write_text("\n\n".join(texts) + "\n")
    return [
        pytest.param(block, id=f"{path.stem}-{number}")
        for path in paths
        for number, block in enumerate(read_blocks(path), 1)
    ]
