"""Levels of features that the whole cluster has agreed on (KIP-584, KIP-778), decided with Kafka's codes and words.

All updates of a request are done, or none. Level 0 switches a feature off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.deltas import Delta, FeatureChanged
from penstock.metadata.image import ClusterImage


class UpgradeType(IntEnum):
    """The number is the code on the wire."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """`upgrade_type` is the number from the wire, known or not."""

    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def plan_update_features(
    image: ClusterImage, request: Sequence[FeatureUpdate], supported: Mapping[str, range]
) -> list[Delta]:
    """KafkaError(INVALID_UPDATE_VERSION) when one of them cannot be done."""
    for update in request:
        _check(image, update, supported)
    return [
        FeatureChanged(name=update.feature, level=update.level)
        for update in request
        if update.level != image.features.get(update.feature, 0)
    ]


def _check(image: ClusterImage, update: FeatureUpdate, supported: Mapping[str, range]) -> None:
    current = image.features.get(update.feature, 0)
    levels = supported.get(update.feature)
    upgrades = update.upgrade_type == UpgradeType.UPGRADE
    reason = None
    if update.upgrade_type not in list(UpgradeType):
        reason = "The controller does not support the given upgrade type."
    elif update.level < 0:
        reason = "A feature version cannot be less than 0."
    elif levels is None:
        reason = "Local controller does not support this feature."
    elif update.level not in levels:
        reason = f"Local controller only supports versions {levels.start}-{levels.stop - 1}"
    elif update.level < current and upgrades:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    elif update.level > current and not upgrades:
        reason = "Can't downgrade to a newer version."
    if reason is not None:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {update.level} for feature {update.feature}. {reason}",
        )
