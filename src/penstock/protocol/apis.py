"""The APIs whose messages are known here: key, name, versions with a schema, and the header versions that go with them.

Which versions a broker serves is not decided here: that is the registry of its handlers. Message classes are imported
when they are asked for, so that starting a process does not pay for APIs that nobody calls.
"""

from __future__ import annotations

import importlib
from typing import Final, NamedTuple

from penstock.protocol.api_table import API_TABLE, ApiKey

__all__ = ["API_KEYS_BY_NUMBER", "Api", "ApiKey", "api", "request_header_version", "response_header_version"]


class Api(NamedTuple):
    key: ApiKey
    name: str
    lowest_version: int
    highest_version: int
    flexible_from: int | None

    @property
    def module(self) -> str:
        return f"penstock.protocol.messages.{self.key.name.lower()}"

    def is_flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from

    def has_version(self, version: int) -> bool:
        return self.lowest_version <= version <= self.highest_version

    def request_class(self) -> type:
        return self._message_class("Request")

    def response_class(self) -> type:
        return self._message_class("Response")

    def _message_class(self, role: str) -> type:
        found = getattr(importlib.import_module(self.module), self.name + role)
        assert isinstance(found, type)
        return found


APIS: Final[dict[int, Api]] = {row[0]: Api(*row) for row in API_TABLE}

API_KEYS_BY_NUMBER: Final[dict[int, ApiKey]] = {int(key): key for key in ApiKey}
"""Faster than `ApiKey(number)`, and `.get` answers None for a key that is unknown here."""


def api(key: int) -> Api:
    """The API with that key; KeyError for one that is unknown here."""
    return APIS[key]


def request_header_version(key: int, version: int) -> int:
    """2 once flexible (tagged fields at the end), 1 before; nothing that is still served uses 0."""
    return 2 if APIS[key].is_flexible(version) else 1


def response_header_version(key: int, version: int) -> int:
    """1 once flexible; always 0 for ApiVersions, whose answer must be readable before versions are agreed."""
    if key == ApiKey.API_VERSIONS:
        return 0
    return 1 if APIS[key].is_flexible(version) else 0
