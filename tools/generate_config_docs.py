"""Print docs/configuration.md from the declarations; with an argument the metrics, or the keys of clients or of SQL.

python tools/generate_config_docs.py > docs/configuration.md
python tools/generate_config_docs.py metrics > docs/metrics.md
python tools/generate_config_docs.py clients > docs/client-configuration.md
python tools/generate_config_docs.py sql > docs/sql-configuration.md
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from markdown import cell

from penstock.base import metric_names
from penstock.base.config import topic_keys
from penstock.base.config.declaration import Key, UpdateMode, format_value
from penstock.base.config.profiles import DEVELOPMENT
from penstock.client.config import KEYS, ClientKind, common_keys
from penstock.sql.server.config import KEYS as SQL_KEYS

THEMES = (
    "server",
    "network",
    "log",
    "replication",
    "groups",
    "transactions",
    "quotas",
    "own",
    "security",
    "quorum",
    "share_groups",
    "tiered_storage",
)

INTRODUCTION = """\
# Configuration

Printed from the declarations by `python tools/generate_config_docs.py`; change the declarations, not this page.

Keys, types, bounds and defaults are those of Apache Kafka 4.3, so an existing `server.properties` works. Settings come
from, the later over the earlier:

1. a profile (`--profile development`),
2. a properties file (`--config FILE`), in Java's format,
3. the environment: `KAFKA_LOG_DIRS` is `log.dirs`; one underscore is a dot, two are an underscore, three a dash.
   `KAFKA_HOME`, `KAFKA_*_OPTS`, `KAFKA_JMX_*`, `KAFKA_LOG4J_*` and the like are left alone,
4. flags (`--data-dir`, `--listeners`, `--override key=value`).

An unknown key is a warning, with the known key it was probably meant to be. A bad value stops the start, and every
problem is listed at once with the place where it was set. Values of secret keys are never shown.
`listener.name.<listener>.<key>` sets a key for one listener.

"Changes" says when a broker key may change while the broker runs: *read-only* at the next start, *per-broker* and
*cluster-wide* at once, for one broker or for all of them (`kafka-configs --alter`). Dynamic settings are kept with the
cluster's metadata and stand above the file. A key that is marked "no effect" is known and checked, and says why it does
nothing.
"""

METRICS_INTRODUCTION = """\
# Metrics

Printed by `python tools/generate_config_docs.py metrics`; change `penstock/base/metric_names.py`, not this page.

The names are those that the usual rules of the JMX exporter give to Kafka's own metrics, in Prometheus' text format, so
dashboards made for Kafka work. They are counted from the first request on; an HTTP page that serves them comes with the
console, and until then they are read in the process (`Broker.metrics.render_prometheus()`).

Names that end in `_total` are counters since the start. Names that end in `ms` are summaries: `quantile` 0.5, 0.75,
0.95, 0.98, 0.99 and 0.999 over everything since the start, right to about 6 %, with `_sum` and `_count`. The others are
gauges.
"""

CLIENTS_INTRODUCTION = """\
# Configuration of the Python clients

Printed from the declarations by `python tools/generate_config_docs.py clients`; change the declarations, not this page.
[clients.md](clients.md) is the guide.

Keys and defaults are those of the Java clients of Apache Kafka 4.3. They are given in a dict under Kafka's names (with
underscores in place of dots will do), or as keywords with underscores, or both, and then keywords win:

```python
Producer({"bootstrap.servers": "localhost:9092", "linger.ms": 20})
Producer(bootstrap_servers="localhost:9092", linger_ms=20)
```

Values are Python's own (numbers, booleans, lists, objects) or text as in a properties file. A bad value raises
`ConfigErrors`, which lists every problem at once. An unknown keyword raises `TypeError`, an unknown key in a dict is a
warning in the log; both name the key that was probably meant. A key that is marked "no effect" is known and checked,
and says why it does nothing.

Short names: `partitioner` for `partitioner.class`, `interceptors` for `interceptor.classes`, `offset_store` for
`penstock.offset.store`, `prefetch_bytes` for `penstock.prefetch.bytes`.
"""

SQL_INTRODUCTION = """\
# Configuration of the SQL server

Printed from the declarations by `python tools/generate_config_docs.py sql`; change the declarations, not this page.
[sql.md](sql.md) is the guide.

Settings come from a properties file (`penstock sql-server --config FILE`), which may be ksqlDB's, and from flags, which
win: `--bootstrap-server`, `--listeners`, `--data-dir`, `--service-id`, `--master`, `--checkpoint-uri`, and
`--override key=value` for any key. A bad value stops the start, and every problem is listed at once with the place
where it was set. An unknown key is a warning, with the known key it was probably meant to be.

Beside the server's own keys, which are below, the file takes:

- `spark.*` for the Spark session (also `--spark-conf`);
- keys of Kafka clients, such as `security.protocol` and `sasl.*`, for every client the server makes
  ([client-configuration.md](client-configuration.md));
- what SET sets, for all queries: `ksql.streams.auto.offset.reset`, `penstock.rows.per.batch`,
  `penstock.fail.on.data.loss`;
- formats of CREATE statements that name none: `ksql.persistence.default.format.key`,
  `ksql.persistence.default.format.value`.

## The server's keys
"""


def table(keys: Iterable[Key[Any]], *, with_changes: bool) -> Iterator[str]:
    yield f"| key | default | allowed | {'changes' if with_changes else 'from the broker'} | what it does |"
    yield "|---|---|---|---|---|"
    for key in keys:
        fourth = _changes(key) if with_changes else ", ".join(f"`{entry.name}`" for entry in key.synonyms)
        effect = f" *No effect: {key.effect}.*" if key.effect else ""
        yield f"| `{key.name}` | {_default(key)} | {cell(key.allowed)} | {fourth} | {cell(key.doc)}{effect} |"


def _changes(key: Key[Any]) -> str:
    return "" if key.update is UpdateMode.READ_ONLY else key.update.value


def _default(key: Key[Any]) -> str:
    text = format_value(key.default)
    if text is None:
        return "unset"
    return f"`{cell(text)}`" if text else "empty"


def configuration_page() -> Iterator[str]:
    yield INTRODUCTION
    yield "## The development profile\n"
    yield "| key | value |\n|---|---|"
    yield from (f"| `{name}` | `{text}` |" for name, text in DEVELOPMENT.items())
    yield "\n## Topic keys\n"
    yield from table(topic_keys.KEYS.values(), with_changes=False)
    for theme in THEMES:
        module = importlib.import_module(f"penstock.base.config.keys.{theme}")
        yield f"\n## {(module.__doc__ or '').strip().rstrip('.')}\n"
        yield from table((value for value in vars(module).values() if isinstance(value, Key)), with_changes=True)


def clients_page() -> Iterator[str]:
    """Each client's own keys, then once what all of them have, with the security keys apart."""
    yield CLIENTS_INTRODUCTION
    shared = {key.name: key for key in vars(common_keys).values() if isinstance(key, Key)}
    for kind in ClientKind:
        yield f"## {kind.value.capitalize()}\n"
        yield from client_table(key for name, key in KEYS[kind].items() if shared.get(name) is not key)
        yield ""
    yield "## All clients\n"
    yield from client_table(key for key in shared.values() if not _is_security(key))
    yield "\n## TLS and SASL\n"
    yield from client_table(filter(_is_security, shared.values()))


def client_table(keys: Iterable[Key[Any]]) -> Iterator[str]:
    yield "| key | default | allowed | what it does |\n|---|---|---|---|"
    for key in keys:
        if not key.internal:
            effect = f" *No effect: {cell(key.effect)}.*" if key.effect else ""
            yield f"| `{key.name}` | {_default(key)} | {cell(key.allowed)} | {cell(key.doc)}{effect} |"


def _is_security(key: Key[Any]) -> bool:
    return key.name.startswith(("security.", "ssl.", "sasl.", "penstock.sasl."))


def sql_page() -> Iterator[str]:
    yield SQL_INTRODUCTION
    yield from client_table(SQL_KEYS.values())


def metrics_page() -> Iterator[str]:
    yield METRICS_INTRODUCTION
    yield "| metric | labels | what it counts |\n|---|---|---|"
    for name, text in metric_names.HELP.items():
        yield f"| `{name}` | {metric_names.LABELS.get(name, '')} | {cell(text)} |"


def main() -> None:
    pages = {"metrics": metrics_page, "clients": clients_page, "sql": sql_page}
    page = pages.get(sys.argv[1], configuration_page) if sys.argv[1:] else configuration_page
    print("\n".join(page()))


if __name__ == "__main__":
    main()
