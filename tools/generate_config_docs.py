"""Print docs/configuration.md (or, with `metrics`, docs/metrics.md) from the declarations.

python tools/generate_config_docs.py > docs/configuration.md
python tools/generate_config_docs.py metrics > docs/metrics.md
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from penstock.base import metric_names
from penstock.base.config import topic_keys
from penstock.base.config.declaration import Key, UpdateMode, format_value
from penstock.base.config.profiles import DEVELOPMENT

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
*cluster-wide* at once; the APIs that change settings are not served yet. A key that is marked "no effect" is known and
checked, and says why it does nothing.
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


def table(keys: Iterable[Key[Any]], *, with_changes: bool) -> Iterator[str]:
    yield f"| key | default | allowed | {'changes' if with_changes else 'from the broker'} | what it does |"
    yield "|---|---|---|---|---|"
    for key in keys:
        fourth = _changes(key) if with_changes else ", ".join(f"`{entry.name}`" for entry in key.synonyms)
        effect = f" *No effect: {key.effect}.*" if key.effect else ""
        yield f"| `{key.name}` | {_default(key)} | {_cell(key.allowed)} | {fourth} | {_cell(key.doc)}{effect} |"


def _changes(key: Key[Any]) -> str:
    return "" if key.update is UpdateMode.READ_ONLY else key.update.value


def _default(key: Key[Any]) -> str:
    text = format_value(key.default)
    if text is None:
        return "unset"
    return f"`{_cell(text)}`" if text else "empty"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


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


def metrics_page() -> Iterator[str]:
    yield METRICS_INTRODUCTION
    yield "| metric | labels | what it counts |\n|---|---|---|"
    for name, text in metric_names.HELP.items():
        yield f"| `{name}` | {metric_names.LABELS.get(name, '')} | {_cell(text)} |"


def main() -> None:
    page = metrics_page() if sys.argv[1:] == ["metrics"] else configuration_page()
    print("\n".join(page))


if __name__ == "__main__":
    main()
