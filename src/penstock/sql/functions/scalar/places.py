"""GEO_DISTANCE: how far two places on earth are apart."""

from __future__ import annotations

import math

from penstock.sql.functions.scalar.declaring import scalar

_RADIUS_KM = 6371.0
_RADIUS_MILES = 3959.0
_RADII = dict.fromkeys(("mi", "mile", "miles"), _RADIUS_MILES) | dict.fromkeys(
    ("", "km", "kilometer", "kilometers", "kilometre", "kilometres"), _RADIUS_KM
)


def _distance(
    latitude1: float | None,
    longitude1: float | None,
    latitude2: float | None,
    longitude2: float | None,
    unit: str | None = None,
) -> float | None:
    """By the haversine formula."""
    if latitude1 is None or longitude1 is None or latitude2 is None or longitude2 is None:
        return None
    if max(abs(latitude1), abs(latitude2)) > 90 or max(abs(longitude1), abs(longitude2)) > 180:
        raise ValueError("latitudes lie between -90 and 90, longitudes between -180 and 180")
    radius = _RADII.get((unit or "").strip().lower())
    if radius is None:
        raise ValueError(f"the unit must be km or miles, not '{unit}'")
    first, second = math.radians(latitude1), math.radians(latitude2)
    haversine = _half_squared(second - first) + _half_squared(math.radians(longitude2 - longitude1)) * math.cos(
        first
    ) * math.cos(second)
    return 2 * math.asin(math.sqrt(haversine)) * radius


def _half_squared(angle: float) -> float:
    return math.sin(angle / 2) ** 2


FUNCTIONS = (
    scalar(
        "OTHER",
        "GEO_DISTANCE",
        "The distance between two places, along the surface of the earth, in kilometers or, with 'miles', in miles. "
        "Places are given in degrees.",
        "lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE -> DOUBLE",
        "lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, unit STRING -> DOUBLE",
        python=_distance,
        strict=False,
    ),
)
