"""Moments as Python has them, and the numbers other systems count them by."""

from __future__ import annotations

import datetime

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH_DATE = EPOCH.date()
_MILLISECOND = datetime.timedelta(milliseconds=1)


def from_ms(time_ms: int) -> datetime.datetime:
    return EPOCH + time_ms * _MILLISECOND


def to_ms(stamp: datetime.datetime) -> int:
    """Rounded down, before 1970 too."""
    return (stamp - EPOCH) // _MILLISECOND


def from_days(days: int) -> datetime.date:
    return EPOCH_DATE + datetime.timedelta(days=days)


def to_days(date: datetime.date) -> int:
    return (date - EPOCH_DATE).days


def time_to_ms(time: datetime.time) -> int:
    """Milliseconds since midnight."""
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1000 + time.microsecond // 1000


def time_from_ms(time_ms: int) -> datetime.time:
    return (EPOCH + time_ms * _MILLISECOND).time()
