"""Java's regular expressions in Python's dialect, for the rule book. Spark runs them in Java itself.

What differs is rewritten: named groups, quotations, classes by name, the end of input. What Python lacks (intersections
of classes) is refused.
"""

from __future__ import annotations

import functools
import re

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
    "IsDigit": "0-9",
    "IsAlphabetic": "a-zA-Z\u00aa-\uffff",
    "L": "a-zA-Z\u00aa-\uffff",
}
_ESCAPES = {"h": r" \t\xa0", "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])", "z": r"\Z", "Z": r"(?=\n?\Z)"}

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\(?P<negated>[pP])\{(?P<property>\w+)\}"
    r"|\\(?P<escape>[hRzZ])"
    r"|\\k<(?P<reference>\w+)>"
    r"|(?P<other>\\.)"
    r"|\(\?<(?P<group>[a-zA-Z]\w*)>"
    r"|(?P<intersection>&&)"
    r"|(?P<bracket>[\[\]])",
    re.DOTALL,
)


class PatternError(ValueError):
    """Not a regular expression, or one that only Java has."""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error as error:
        raise PatternError(f"Invalid regular expression pattern: {pattern} ({error})") from error


def _translated(pattern: str) -> str:
    depth = 0

    def rewrite(token: re.Match[str]) -> str:
        nonlocal depth
        if token["bracket"]:
            depth += 1 if token["bracket"] == "[" else -1
        return _rewritten(token, inside_class=depth > 0)

    return _TOKEN.sub(rewrite, pattern)


def _rewritten(token: re.Match[str], inside_class: bool) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["property"]:
        return _class(token["property"], token["negated"] == "P", inside_class)
    if token["escape"]:
        meaning = _ESCAPES[token["escape"]]
        return f"[{meaning}]" if token["escape"] == "h" and not inside_class else meaning
    if token["reference"]:
        return f"(?P={token['reference']})"
    if token["group"]:
        return f"(?P<{token['group']}>"
    if token["intersection"] and inside_class:
        raise PatternError("Intersections of character classes are not supported.")
    return token[0]


def _class(name: str, negated: bool, inside_class: bool) -> str:
    members = _CLASSES.get(name)
    if members is None or (negated and inside_class):
        raise PatternError(f"The character class {name} is not supported here.")
    return members if inside_class else f"[{'^' if negated else ''}{members}]"


_REPLACEMENT = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|(\\$|\$)", re.DOTALL)


def expand(replacement: str, found: re.Match[str]) -> str:
    """`$1` and `${name}` are groups; after a backslash a character is itself."""

    def rewrite(token: re.Match[str]) -> str:
        if token[1]:
            return token[1]
        if token[4]:
            raise PatternError(f"Illegal group reference in {replacement}")
        return found[int(token[2])] or "" if token[2] else found[token[3]] or ""

    return _REPLACEMENT.sub(rewrite, replacement)
