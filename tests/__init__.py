"""Penstock's tests; ``tests.support`` is what they share."""
