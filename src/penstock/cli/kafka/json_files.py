"""The JSON files that some tools take: lists of partitions with something about each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.cli.failures import Failed


def read_json(path: str) -> Mapping[str, Any]:
    """The object in a file; the failure names the file and the place."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise Failed(f"{path} is no text file with JSON") from None
    except json.JSONDecodeError as error:
        raise Failed(f"{path}:{error.lineno}:{error.colno} is no JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise Failed(f"{path} has no JSON object in it, such as {{...}}")
    if found.get("version", 1) != 1:
        raise Failed(f"{path} is of version {found['version']!r}; only version 1 is known")
    return found


def partition_entries(path: str, content: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Topic, partition and the whole entry of each partition in the file; none may be there twice."""
    entries = content.get("partitions")
    if not isinstance(entries, list):
        raise Failed(f'{path} has no list of partitions: {{"partitions": [{{"topic": "foo", "partition": 0}}]}}')
    seen = set()
    for each in entries:
        topic = each.get("topic") if isinstance(each, dict) else None
        partition = each.get("partition") if isinstance(each, dict) else None
        if not isinstance(topic, str) or not isinstance(partition, int) or isinstance(partition, bool):
            raise Failed(f"{path}: {json.dumps(each)} names no topic and partition")
        if (topic, partition) in seen:
            raise Failed(f"{path} names partition {topic}-{partition} twice")
        seen.add((topic, partition))
        yield topic, partition, each
