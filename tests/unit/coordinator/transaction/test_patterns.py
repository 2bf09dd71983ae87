"""Patterns for transactional ids: what Python's own matcher says, without its bad days."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.transaction.patterns import PATTERN_LENGTH_MAX, PatternError, compile_pattern

PATTERNS = [
    "",
    "a",
    "tran-.*",
    "tran-[0-9]+",
    "(a|b)*c",
    "a{2,4}b?",
    "a{2}",
    "^x.*y$",
    "[^abc]+",
    r"\d+-\w*",
    r"[\d.]+\s?",
    "(?:ab)+|c",
    "(?P<name>a)b",
    "a*?b",
    r"\.txt",
    "((a|b)?c)*",
    "a||b",
]


@given(pattern=st.sampled_from(PATTERNS), text=st.text(alphabet="abcxyz-01.t \n", max_size=8))
def test_as_the_usual_matcher(pattern: str, text: str) -> None:
    # A dollar also stands before a last line end there, which ids do not have.
    expected = re.fullmatch(pattern.replace("$", r"\Z"), text) is not None
    assert compile_pattern(pattern)(text) is expected


def test_no_pattern_takes_long() -> None:
    assert not compile_pattern("(a+)+b")("a" * 5000)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[",
        "*",
        r"(a)\1",
        "(?=a)b",
        "(?!a)b",
        r"\bword",
        "(?i)a",
        "(?i:a)",
        "(((a{100}){100}){100}){100}",
        "(((){60000}){60000}){60000}",
        "a" * (PATTERN_LENGTH_MAX + 1),
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)
