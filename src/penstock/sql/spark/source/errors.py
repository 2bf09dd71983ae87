"""What can go wrong with a source, told to the one whose query stops of it."""

from __future__ import annotations

LOSS_REMEDY = "Start from a new checkpoint, or set failOnDataLoss=false to go on with what there is."
"""The end of every DataLossError; whoever hides the checkpoint and the option from people has another one."""


class SourceError(Exception):
    """The topics cannot be read as asked."""


class DataLossError(SourceError):
    """Records that were to be read are not there any more."""
