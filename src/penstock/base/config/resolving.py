"""From names and texts to keys and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.base.config import broker_keys
from penstock.base.config.declaration import Key, Problem
from penstock.base.config.rules import BadValueError
from penstock.base.config.sources import Setting

_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(?:[a-z0-9-]+\.)?")


def known_key(name: str) -> Key[Any] | None:
    """The key of this name; `listener.name.<listener>.` (and a SASL mechanism) may stand before a key's own name."""
    key = broker_keys.KEYS.get(name)
    if key is None and (match := _LISTENER_PREFIX.match(name)):
        rest = name[match.end() :]
        # The shortest prefix first: the optional part must not swallow the beginning of a key's own name.
        without_listener = name.split(".", 3)[3]
        key = broker_keys.KEYS.get(without_listener) or broker_keys.KEYS.get(rest)
    return key


def parse_settings(settings: Mapping[str, Setting]) -> tuple[dict[str, Any], list[Problem]]:
    """The values of the known keys, and every text that is no value of its key."""
    values: dict[str, Any] = {}
    problems = []
    for name, setting in settings.items():
        key = known_key(name)
        if key is None:
            continue
        try:
            values[name] = key.parse(setting.text)
        except BadValueError as error:
            problems.append(bad_value(name, key, setting, error.reason))
    return values, problems


def bad_value(name: str, key: Key[Any], setting: Setting, reason: str) -> Problem:
    shown = "[hidden]" if key.sensitive else setting.text
    return Problem(key=name, value=shown, origin=setting.origin, reason=f"{reason}; allowed: {key.allowed}")


def problem_with(key: Key[Any], settings: Mapping[str, Setting], reason: str) -> Problem:
    setting = settings.get(key.name)
    if setting is None:
        return Problem(key=key.name, reason=reason)
    return Problem(key=key.name, value=setting.text, origin=setting.origin, reason=reason)
