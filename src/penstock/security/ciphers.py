"""Cipher suites by Java's names (IANA's) turned into OpenSSL's.

TLS 1.3 has the same names in both; older suites are spelled differently: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is
`ECDHE-RSA-AES128-GCM-SHA256`. A name with dashes is OpenSSL's already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

TLS13_SUITES: Final = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
_OLDER: Final = re.compile(r"TLS_(?P<exchange>[A-Z0-9_]+)_WITH_(?P<cipher>[A-Z0-9_]+)")


class SuiteError(ValueError):
    """No such suite."""


class Ciphers(NamedTuple):
    tls13: tuple[str, ...]
    older: tuple[str, ...]
    """In OpenSSL's spelling."""


def openssl_ciphers(suites: Sequence[str]) -> Ciphers:
    tls13 = tuple(suite for suite in suites if suite in TLS13_SUITES)
    return Ciphers(tls13, tuple(_older_name(suite) for suite in suites if suite not in TLS13_SUITES))


def _older_name(suite: str) -> str:
    found = _OLDER.fullmatch(suite)
    if found is None:
        if "-" in suite:
            return suite
        raise SuiteError(f"no cipher suite is called {suite!r}")
    # RSA alone is the default exchange, which OpenSSL does not spell; nor does it say CBC.
    exchange = "" if found["exchange"] == "RSA" else found["exchange"].replace("_", "-") + "-"
    cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", found["cipher"]).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")
