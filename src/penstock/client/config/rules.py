"""Rules of the clients' values that brokers do not have."""

from __future__ import annotations

import re
from typing import Any, Final

from penstock.base.config.rules import BadValueError, OneOf
from penstock.client.config.foreign import RESETS

_DURATION: Final = re.compile(
    r"P(?=\d|T\d)(?:(?P<d>\d+)D)?(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO-8601 duration such as `PT12H` or `P3D`; ValueError when it is none."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as PT12H or P3DT4H")
    return int(sum(float(amount) * _UNITS_MS[unit] for unit, amount in match.groupdict().items() if amount))


class GroupProtocol(OneOf):
    """The one protocol that the client speaks; the others are known by name."""

    __slots__ = ()
    _NEWER: Final = ("consumer", "streams", "share")

    def __init__(self) -> None:
        super().__init__("classic", any_case=True)

    def check(self, value: Any) -> None:
        if value.lower() in self._NEWER:
            raise BadValueError(
                "the client does not speak the consumer protocol (KIP-848): leave group.protocol out, or set classic, "
                "which works with every broker"
            )
        super().check(value)


class ResetPolicy:
    """earliest, latest, none, or by_duration with an ISO-8601 duration (KIP-1106)."""

    __slots__ = ()
    words = "earliest, latest, none or by_duration:<ISO-8601 duration>"

    def check(self, value: Any) -> None:
        name, separator, duration = value.partition(":")
        if name.lower() != "by_duration":
            if separator or name.lower() not in ("earliest", "latest", "none"):
                meant = RESETS.get(value.lower())
                hint = f"; {value} is other clients' word for {meant}" if meant else ""
                raise BadValueError(f"must be {self.words}{hint}")
            return
        try:
            duration_ms(duration)
        except ValueError as error:
            raise BadValueError(str(error)) from None
