from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.config.properties import parse_properties


def parsed(text: str) -> dict[str, str]:
    properties, problems = parse_properties(text, "f")
    assert problems == []
    return {entry.key: entry.value for entry in properties}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b c ", {"a": "b c "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a\t:\tb", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a = = b", {"a": "= b"}),
        ("a=", {"a": ""}),
        ("# c\n! d\n\n  # e\na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b,\\\n   c", {"a": "b,c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=é", {"a": "é"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\\", {"a": "1"}),
        ("path=C:\\\\dir", {"path": "C:\\dir"}),
    ],
)
def test_java_syntax(text: str, expected: dict[str, str]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a=1\nlonely\nb=2", 2, "not of the form key=value"),
        ("\n\nlonely   ", 3, "not of the form key=value"),
        ("=value", 1, "no key"),
        ("a=\\u12", 1, "four hexadecimal digits"),
        ("a=b\\\nc\nd=\\uxyz1", 3, "four hexadecimal digits"),
    ],
)
def test_a_malformed_line_is_named(text: str, line: int, reason: str) -> None:
    _, (problem,) = parse_properties(text, "server.properties")
    assert problem.origin == f"server.properties:{line}"
    assert reason in str(problem)


def test_a_problem_does_not_show_the_value() -> None:
    _, (problem,) = parse_properties("ssl.key.password=hunter2\\u1", "f")
    assert "hunter2" not in str(problem)


def test_a_continued_line_has_the_number_of_its_first() -> None:
    (first, second), _ = parse_properties("a=1\\\n2\\\n3\nb=4", "f")
    assert (first.line, first.value, second.line) == (1, "123", 4)


def escape(text: str) -> str:
    out = "".join(f"\\{sign}" if sign in "\\:=#! \t\f" else sign for sign in text)
    return out.replace("\n", "\\n").replace("\r", "\\r")


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(words, words))
def test_escaped_text_round_trips(properties: dict[str, str]) -> None:
    text = "\n".join(f"{escape(key)}={escape(value)}" for key, value in properties.items())
    assert parsed(text) == properties


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    parse_properties(text, "f")
