"""The features of the cluster that this broker knows, and the levels of them that it can serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.server.transactions import TRANSACTION_VERSION_FEATURE, TRANSACTION_VERSION_MAX

SUPPORTED_FEATURES: Final[Mapping[str, range]] = {TRANSACTION_VERSION_FEATURE: range(TRANSACTION_VERSION_MAX + 1)}
