"""PRINT shows bytes as what they are, and changes nothing in them."""

from __future__ import annotations

import struct

import pytest

from penstock.sql.engine.printing import formats_of, printed
from penstock.sql.engine.reading import similar_topic


@pytest.mark.parametrize(
    ("data", "text", "formats"),
    [
        (None, "<null>", r"¯\_(ツ)_/¯ - no data processed"),
        (b"", "", "KAFKA_STRING"),
        (b"plain text", "plain text", "KAFKA_STRING"),
        (b"two\nlines", r"two\nlines", "KAFKA_STRING"),
        (b'{"A":12.50,"B":1e5,"C":"\\u00fc"}', '{"A":12.50,"B":1e5,"C":"\\u00fc"}', "JSON or KAFKA_STRING"),
        (b"123456789012345678901234567890.12", "123456789012345678901234567890.12", "JSON or KAFKA_STRING"),
        (b'{\n  "A": 12.50\n}', '{"A": 12.50}', "JSON or KAFKA_STRING"),
        (b'{"A": ', '{"A": ', "KAFKA_STRING"),
        (struct.pack(">i", 7), "7", "KAFKA_INT"),
        (struct.pack(">q", -7), "-7", "KAFKA_BIGINT or KAFKA_DOUBLE"),
        (b"\xff\xfe\xfd", "fffefd", "BYTES"),
    ],
)
def test_values(data: bytes | None, text: str, formats: str) -> None:
    assert printed(data).text == text
    assert formats_of([data]) == formats


@pytest.mark.parametrize(
    ("data", "text", "formats"),
    [
        (
            b"u1" + struct.pack(">q", 1_700_000_000_000),
            "[u1@1700000000000/-]",
            "HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)",
        ),
        (
            struct.pack(">iq", 5, 60_000),
            "[5@60000/-]",
            "HOPPING(KAFKA_INT) or TUMBLING(KAFKA_INT)",
        ),
        (
            b"u1" + struct.pack(">qq", 1_700_000_060_000, 1_700_000_000_000),
            "[u1@1700000000000/1700000060000]",
            "SESSION(KAFKA_STRING)",
        ),
        (b"u1" + b"\xff" * 8, "7531" + "ff" * 8, "BYTES"),
    ],
)
def test_keys_with_windows(data: bytes, text: str, formats: str) -> None:
    assert printed(data, may_be_windowed=True).text == text
    assert formats_of([data, None], may_be_windowed=True) == formats


def test_formats_are_those_of_all_records() -> None:
    assert formats_of([b"{}", b"text"]) == "KAFKA_STRING"
    assert formats_of([b"text", b"\xff"]) == "KAFKA_STRING or BYTES"


def test_a_topic_that_is_near() -> None:
    assert similar_topic("Order", ["orders", "users"]) == "Did you mean 'orders'?"
    assert similar_topic("x", []) == "SHOW TOPICS lists those there are."
