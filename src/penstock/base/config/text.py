"""Numbers as Java prints them, and the distance between two names."""

from __future__ import annotations

from collections.abc import Iterable


def format_double(value: float) -> str:
    """`Double.toString`: plain between 1e-3 and 1e7, otherwise one digit, a point and `E`; always with a point."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        # repr() gives the shortest digits too, and only leaves plain notation outside this range.
        return repr(float(value))
    digits, _, exponent = f"{value!r}e0".partition("e")
    return _scientific(digits, int(exponent.split("e")[0]))


def _scientific(digits: str, exponent: int) -> str:
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    significant = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(significant)
    exponent += len(whole) - 1 - leading_zeros
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{exponent}"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    import difflib  # only a misspelt key needs it, and the start should be quick

    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return matches[0] if matches else None
