"""What can go wrong with a source, told to the one whose query stops of it."""

from __future__ import annotations


class SourceError(Exception):
    """The topics cannot be read as asked."""


class DataLossError(SourceError):
    """Records that were to be read are not there any more."""
