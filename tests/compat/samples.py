"""Records that show what a record can hold."""

from __future__ import annotations

import time

from tests.compat.clients.base import Record

_EVERY_BYTE = bytes(range(256))


def sample_records() -> list[Record]:
    """Null, empty and binary keys and values, headers of every kind, time stamps out of order.

    Time stamps are fresh, so that retention spares them.
    """
    now = int(time.time() * 1000) - 60_000
    special = [
        Record(b"plain", b"a value", (), now),
        Record(None, b"no key", (("one", b"header"),), now + 5),
        Record(b"", b"empty key", (), now + 2),
        Record(b"tombstone", None, (), now + 7),
        Record(b"empty", b"", (), now + 1),
        Record(b"headers", b"several", (("a", b"1"), ("b", b"2"), ("nothing", None), ("empty", b"")), now + 9),
        Record(_EVERY_BYTE, _EVERY_BYTE, (), now + 8),
        Record("schlüssel".encode(), "värde \N{SNOWMAN}".encode(), (("ünï", "cödé".encode()),), now + 11),
    ]
    # Compressible, and enough for several batches with small settings.
    many = [Record(b"k%d" % (index % 7), b"number %d " % index * 20, (), now + 20 + index) for index in range(40)]
    return special + many
