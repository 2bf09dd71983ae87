"""What a partition takes from its topic's configuration, built once per change of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.metadata.image import TopicState
from penstock.records.validation import ProduceRules
from penstock.storage.config import LogConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    rules: ProduceRules
    log: LogConfig
    min_insync_replicas: int = 1


SettingsFor = Callable[[TopicState], TopicSettings]
