"""Clients nobody here wrote, each behind the same small face (``base.Client``)."""
