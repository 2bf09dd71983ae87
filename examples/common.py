"""What every example needs and none is about: its arguments, and a topic to work with."""

from __future__ import annotations

import argparse
import contextlib
import inspect

import penstock


def arguments(about: str | None, **defaults: str) -> argparse.Namespace:
    """`--bootstrap-server`, and one option with a default value for each keyword: `topic="orders"` is `--topic`."""
    parser = argparse.ArgumentParser(
        description=inspect.cleandoc(about or ""), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-server", default="localhost:9092", metavar="HOST:PORT")
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=value, help=f"default: {value}")
    return parser.parse_args()


def make_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> bool:
    """Create a topic (`make_topic(..., max_message_bytes="2000")`); False when it is there from an earlier run."""
    wanted = penstock.NewTopic(
        name=name,
        num_partitions=partitions,
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )
    with penstock.Admin(bootstrap_servers=bootstrap) as admin, contextlib.suppress(penstock.TopicAlreadyExists):
        admin.create_topics([wanted])
        return True
    return False
