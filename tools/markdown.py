"""What the pages that are printed from code have in common."""

from __future__ import annotations


def cell(text: str) -> str:
    """Text as a cell of a table."""
    return text.replace("|", "\\|")
