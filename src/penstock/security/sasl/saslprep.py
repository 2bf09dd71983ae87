"""SASLprep (RFC 4013): one spelling for names and passwords that look alike.

Kafka's own servers and clients take UTF-8 as it comes, so this is used only where it is asked for.
"""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable
from typing import Final

from penstock.security.sasl.mechanism import SaslError

_PROHIBITED: Final[tuple[Callable[[str], bool], ...]] = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def saslprep(text: str) -> str:
    """The prepared form; `SaslError` for text that has none."""
    mapped = "".join(
        " " if stringprep.in_table_c12(sign) else sign for sign in text if not stringprep.in_table_b1(sign)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for sign in prepared:
        if any(is_prohibited(sign) for is_prohibited in _PROHIBITED):
            raise SaslError(f"the character U+{ord(sign):04X} may not stand in a name or password (RFC 4013)")
    _check_direction(prepared)
    return prepared


def _check_direction(text: str) -> None:
    """Text with a right-to-left sign begins and ends with one, and holds none of the other direction (RFC 3454, 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    bounded = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not bounded or any(map(stringprep.in_table_d2, text)):
        raise SaslError("a name or password mixes directions of writing in a way that RFC 4013 does not allow")
