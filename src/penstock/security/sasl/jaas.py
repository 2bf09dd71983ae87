"""Java's way to write credentials: `sasl.jaas.config`, one login module with options, such as

org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="secret";
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_HEAD: Final = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)")
_OPTION: Final = re.compile(
    r"""\s+(?P<name>[\w.\-]+)\s*=\s*
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' | (?P<bare>[^\s;"']+) )""",
    re.VERBOSE | re.DOTALL,
)
_END: Final = re.compile(r"\s*;\s*$")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class JaasError(ValueError):
    """The text is no login module; says how one looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginModule:
    name: str
    options: dict[str, str] = field(repr=False)

    @property
    def kind(self) -> str:
        """The class without its package."""
        return self.name.rpartition(".")[2]


def parse_login_module(text: str) -> LoginModule:
    head = _HEAD.match(text)
    if head is None or head["flag"].lower() not in _FLAGS:
        raise JaasError("it begins with the login module's class and the word required")
    options: dict[str, str] = {}
    position = head.end()
    while (option := _OPTION.match(text, position)) is not None:
        options[option["name"]] = _value(option)
        position = option.end()
    if _END.match(text, position) is None:
        raise JaasError('behind the class come options such as username="alice", and a semicolon ends it')
    return LoginModule(name=head["module"], options=options)


def _value(option: re.Match[str]) -> str:
    if option["bare"] is not None:
        return option["bare"]
    quoted = option["double"] if option["double"] is not None else option["single"]
    return _ESCAPED.sub(r"\1", quoted)
