"""Spark's failures for people: it wraps the reason into a page of Java."""

from __future__ import annotations

import re

_OURS = re.compile(r"^(?:penstock\.[\w.]+|pyspark\.[\w.]+): (.+)$")
_CONDITION = re.compile(r"^\[[A-Z_.]+\]\s*")


def reason_of(error: BaseException) -> str:
    """The sentence that says why: ours if one of our errors is inside, else Spark's first."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    ours = [match.group(1) for line in lines if (match := _OURS.match(line))]
    if ours:
        return ours[-1]
    return _CONDITION.sub("", lines[0]) if lines else type(error).__name__
