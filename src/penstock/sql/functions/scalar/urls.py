"""Parts of URLs, and the encoding of parameters.

URLs follow the rules of Java's `java.net.URI`: a text that breaks them is refused, and the parts are given decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote_plus, unquote

from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar

_url = partial(scalar, "URL")

_PARTS = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?"
    r"(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_AUTHORITY = re.compile(
    r"(?:[^@]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.?)(?::(?P<port>\d*))?"
)
_FORBIDDEN = re.compile(r"[\x00-\x20\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    scheme: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


def parse(text: str) -> Url:
    """Brackets belong into the host only."""
    parts = _PARTS.fullmatch(text)
    if parts is None or _FORBIDDEN.search(text) or re.search(r"[\[\]]", parts["path"]):
        raise ValueError(f"URL input has invalid syntax: {text}")
    server = _AUTHORITY.fullmatch(parts["authority"] or "")
    port = server["port"] if server else None
    opaque = parts["scheme"] and parts["authority"] is None and not parts["path"].startswith("/")
    return Url(
        scheme=parts["scheme"],
        host=server["host"] if server else None,
        port=int(port) if port else None,
        path=None if opaque else unquote(parts["path"]),
        query=_decoded(parts["query"]),
        fragment=_decoded(parts["fragment"]),
    )


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part)


def _parameter(text: str, name: str) -> str | None:
    """Empty for a parameter without a value."""
    for pair in (parse(text).query or "").split("&"):
        found, _, value = pair.partition("=")
        if found == name and pair:
            return value
    return None


def _decode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"'{text}' is not URL encoded")
    return unquote(text.replace("+", " "))


def _part(name: str, description: str, choose: Callable[[Url], Any], result: str = "STRING") -> ScalarFunction:
    return _url(name, description, f"url STRING -> {result}", python=lambda text: choose(parse(text)))


FUNCTIONS = (
    _url(
        "URL_DECODE_PARAM",
        "The text that an encoded URL parameter stands for. See URL_ENCODE_PARAM.",
        "text STRING -> STRING",
        python=_decode,
        spark="try_url_decode({0})",
    ),
    _url(
        "URL_ENCODE_PARAM",
        "The text as it may stand in the parameters of a URL: a blank becomes +, and so on.",
        "text STRING -> STRING",
        python=lambda text: quote_plus(text, safe="*-._").replace("~", "%7E"),
        spark="url_encode({0})",
    ),
    _part("URL_EXTRACT_FRAGMENT", "What stands after #, decoded; null when nothing does.", lambda url: url.fragment),
    _part("URL_EXTRACT_HOST", "The name of the host; null when there is none.", lambda url: url.host),
    _url(
        "URL_EXTRACT_PARAMETER",
        "The value of a parameter, decoded; null when the URL has no such parameter, empty when that has no value.",
        "url STRING, parameter STRING -> STRING",
        python=_parameter,
    ),
    _part("URL_EXTRACT_PATH", "The path, decoded; empty when there is none.", lambda url: url.path),
    _part("URL_EXTRACT_PORT", "The port; null when none is written.", lambda url: url.port, "INTEGER"),
    _part("URL_EXTRACT_PROTOCOL", "The protocol, such as http; null when there is none.", lambda url: url.scheme),
    _part("URL_EXTRACT_QUERY", "What stands between ? and #, decoded; null when nothing does.", lambda url: url.query),
)
