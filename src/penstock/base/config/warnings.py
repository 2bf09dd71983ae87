"""What a start should say about a configuration that works: unknown keys, keys without effect, clipped values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.base.config import broker_keys as keys
from penstock.base.config.effective import PlainValues
from penstock.base.config.profiles import PROFILE_ORIGIN
from penstock.base.config.resolving import known_key
from penstock.base.config.retired import RETIRED
from penstock.base.config.sources import Setting
from penstock.base.config.text import closest

_INTERNAL_REPLICAS = (keys.OFFSETS_TOPIC_REPLICATION_FACTOR, keys.TRANSACTION_STATE_LOG_REPLICATION_FACTOR)


def collect_warnings(
    values: PlainValues, settings: Mapping[str, Setting], *, left_closed: Sequence[str]
) -> tuple[str, ...]:
    return (
        *_unknown(settings),
        *_without_effect(values, settings),
        *_clipped(values),
        *(f"listener {name} belongs to a KRaft controller and is not opened" for name in left_closed),
    )


def _unknown(settings: Mapping[str, Setting]) -> Iterator[str]:
    for name, setting in settings.items():
        if known_key(name) is not None:
            continue
        if name in RETIRED:
            yield f"{name} ({setting.origin}) has no effect: {RETIRED[name]}"
            continue
        meant = closest(name, keys.KEYS)
        hint = f"; did you mean {meant}?" if meant else ""
        yield f"{name} ({setting.origin}) is not a known key and is ignored{hint}"


def _without_effect(values: PlainValues, settings: Mapping[str, Setting]) -> Iterator[str]:
    """One line for each reason. Nobody needs to hear of a value that is the default anyway, or of a profile's."""
    by_reason: dict[str, list[str]] = {}
    for name, setting in settings.items():
        key = known_key(name)
        if key is None or not key.effect or setting.origin == PROFILE_ORIGIN:
            continue
        if name != key.name or values[key] != key.default:
            by_reason.setdefault(key.effect, []).append(name)
    for reason, names in by_reason.items():
        verb = "has" if len(names) == 1 else "have"
        yield f"{', '.join(sorted(names))} {verb} no effect: {reason}"


def _clipped(values: PlainValues) -> Iterator[str]:
    """A broker that is alone cannot hold more than one replica of anything."""
    too_many = [f"{key.name}={values[key]}" for key in _INTERNAL_REPLICAS if values[key] > 1]
    if values[keys.TRANSACTION_STATE_LOG_MIN_ISR] > 1:
        too_many.append(f"{keys.TRANSACTION_STATE_LOG_MIN_ISR.name}={values[keys.TRANSACTION_STATE_LOG_MIN_ISR]}")
    if too_many:
        yield f"one broker: 1 is used instead of {', '.join(too_many)}"
    if values[keys.DEFAULT_REPLICATION_FACTOR] > 1:
        count = values[keys.DEFAULT_REPLICATION_FACTOR]
        yield f"one broker: topics without a replication factor of their own cannot get {count} replicas"
