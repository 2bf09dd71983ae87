"""Every broker key of Kafka 4.3 and every key of our own, as typed constants named after their keys.

`num.partitions` is `NUM_PARTITIONS`; dots and dashes become underscores. The declarations are in `keys/`, by theme.
"""

# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.base.config.declaration import Key
from penstock.base.config.keys.groups import *
from penstock.base.config.keys.log import *
from penstock.base.config.keys.network import *
from penstock.base.config.keys.own import *
from penstock.base.config.keys.quorum import *
from penstock.base.config.keys.quotas import *
from penstock.base.config.keys.replication import *
from penstock.base.config.keys.security import *
from penstock.base.config.keys.server import *
from penstock.base.config.keys.share_groups import *
from penstock.base.config.keys.tiered_storage import *
from penstock.base.config.keys.transactions import *

KEYS: Final[Mapping[str, Key[Any]]] = {
    value.name: value for value in tuple(globals().values()) if isinstance(value, Key)
}
"""All of them by name."""
