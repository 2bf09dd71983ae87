"""kafka-log-dirs: what lies in the log directories of brokers, as JSON."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.parsing import Option, Parsed, UsageError, flag, joined
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool


def _run(options: Parsed) -> None:
    options.require("describe")
    topics = {each.strip() for each in (options.get("topic-list") or "").split(",") if each.strip()}
    wanted = _broker_ids(options.get("broker-list") or "")
    with open_admin(options) as admin:
        existing = sorted(node.id for node in admin.describe_cluster().nodes)
        unknown = [each for each in wanted if each not in existing]
        if unknown:
            raise Failed(
                f"ERROR: The given brokers do not exist from --broker-list: {joined(unknown)}. Current existent "
                f"brokers: {joined(existing)}"
            )
        chosen = wanted or existing
        print("Querying brokers for log directories information")
        described = admin.describe_log_dirs(chosen)
    print(f"Received log directory information from brokers {joined(chosen)}")
    brokers = [
        {"broker": broker, "logDirs": [_directory(each, topics) for each in described[broker].values()]}
        for broker in chosen
    ]
    print(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))


def _directory(directory: Any, topics: set[str]) -> dict[str, Any]:
    partitions = [
        {
            "partition": str(tp),
            "size": replica.size,
            "offsetLag": replica.offset_lag,
            "isFuture": replica.is_future,
        }
        for tp, replica in directory.replicas.items()
        if not topics or tp.topic in topics
    ]
    error = None if directory.error is None else directory.error.message
    return {"partitions": partitions, "error": error, "logDir": directory.path}


def _broker_ids(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",") if each.strip()]
    except ValueError:
        raise UsageError(
            f"--broker-list takes the ids of brokers, as 0,1,2, and '{text}' is not of that form"
        ) from None


TOOL = Tool(
    name="kafka-log-dirs",
    about="This tool helps to query log directory usage on the specified brokers.",
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        flag("describe", "Describe the directories."),
        Option("broker-list", "The ids of brokers, as 0,1,2; all without it.", metavar="ids", default=""),
        Option("topic-list", "Topics, as topic1,topic2; all without it.", metavar="topics", default=""),
    ),
)


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
