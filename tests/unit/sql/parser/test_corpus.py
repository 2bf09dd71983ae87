"""Every statement of the language is understood, and is what it says."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from penstock.sql.parser import parse
from penstock.sql.statements import Statement

CORPUS = [
    tuple(part.strip() for part in line.split("|", 1))
    for line in Path(__file__).with_name("corpus.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("kind", "text"), CORPUS, ids=[text[:60] for _, text in CORPUS])
def test_the_statement_is_understood(kind: str, text: str) -> None:
    (parsed,) = parse(text)
    assert type(parsed.statement).__name__ == kind


def test_the_corpus_has_every_kind_of_statement() -> None:
    assert {kind for kind, _ in CORPUS} == {each.__name__ for each in get_args(Statement)}


def test_the_whole_corpus_as_one_script() -> None:
    script = "\n".join(text if text.endswith(";") else f"{text}\n;" for _, text in CORPUS)
    assert [type(each.statement).__name__ for each in parse(script)] == [kind for kind, _ in CORPUS]
