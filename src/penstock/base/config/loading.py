"""Load a broker's configuration: profile, properties file, `KAFKA_*` environment, flags; the later over the earlier.

`KAFKA_LOG_DIRS` is `log.dirs`: one underscore is a dot, two are an underscore, three a dash. Variables that Kafka's
scripts and images use for other things (`KAFKA_HOME`, `KAFKA_HEAP_OPTS`, `KAFKA_JMX_PORT` ...) are left alone, and so
are those that Kubernetes sets for a service of the name.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import Problem
from penstock.base.config.profiles import PROFILE_ORIGIN, PROFILES
from penstock.base.config.properties import decode_properties, parse_properties
from penstock.base.config.sources import Setting

_IGNORED_VARIABLES = re.compile(
    r"KAFKA_(HOME|VERSION|DEBUG|USER|GROUP|SCALA_VERSION|MODE|CLUSTER_ID|GPG_KEY|DATA|URL|CONFIG|"
    r"JMX_.*|LOG4J_.*|TOOLS_LOG4J.*|NATIVE_.*|(.*_)?OPTS|"
    # What Kubernetes tells every container about a service that is called kafka.
    r"SERVICE_(HOST|PORT)(_.*)?|PORT(_[0-9]+_(TCP|UDP).*)?)"
)
_SEPARATORS = {"_": ".", "__": "_", "___": "-"}


def load_broker_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    profile: str | None = None,
    *,
    hostname: str | None = None,
) -> BrokerConfig:
    """ConfigErrors lists every problem. `hostname` (this machine's name) is advertised where a listener names none."""
    settings: dict[str, Setting] = {}
    problems: list[Problem] = []
    if profile is not None:
        settings.update({key: Setting(text, PROFILE_ORIGIN) for key, text in PROFILES[profile].items()})
    if file is not None:
        from_file, problems = read_settings_file(file)
        _put(settings, from_file)
    _put(settings, settings_from_environment(environ or {}))
    _put(settings, {key: Setting(text, "flag") for key, text in (flags or {}).items()})
    return BrokerConfig(settings, hostname=hostname or socket.gethostname(), problems=problems)


def read_settings_file(file: Path) -> tuple[dict[str, Setting], list[Problem]]:
    try:
        text = decode_properties(file.read_bytes())
    except OSError as error:
        return {}, [Problem(key=str(file), reason=f"cannot be read: {error.strerror or error}")]
    properties, problems = parse_properties(text, str(file))
    return {entry.key: Setting(entry.value, f"{file}:{entry.line}") for entry in properties}, problems


def settings_from_environment(environ: Mapping[str, str]) -> dict[str, Setting]:
    return {
        variable_to_key(variable): Setting(text, variable)
        for variable, text in sorted(environ.items())
        if variable.startswith("KAFKA_") and len(variable) > 6 and not _IGNORED_VARIABLES.fullmatch(variable)
    }


def variable_to_key(variable: str) -> str:
    """`KAFKA_A_B__C___D` is `a.b_c-d`."""
    rest = variable.removeprefix("KAFKA_").lower()
    return re.sub("_{1,3}", lambda match: _SEPARATORS[match[0]], rest)


_ALIASES = {"node.id": "broker.id", "broker.id": "node.id", "log.dirs": "log.dir", "log.dir": "log.dirs"}


def _put(settings: dict[str, Setting], later: Mapping[str, Setting]) -> None:
    """Later settings replace earlier ones, also under a key's other name: a flag node.id beats a file's broker.id."""
    for key in later:
        alias = _ALIASES.get(key)
        if alias is not None and alias not in later:
            settings.pop(alias, None)
    settings.update(later)
