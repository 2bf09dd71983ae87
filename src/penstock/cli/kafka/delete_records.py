"""kafka-delete-records: delete the records of partitions before an offset."""

from __future__ import annotations

from typing import NoReturn

from penstock.cli.failures import Failed
from penstock.cli.kafka.connecting import open_admin
from penstock.cli.kafka.json_files import partition_entries, read_json
from penstock.cli.kafka.parsing import Option, Parsed
from penstock.cli.kafka.tool import BOOTSTRAP, COMMAND_CONFIG, Tool, run_tool


def _run(options: Parsed) -> int:
    from penstock.base.errors import KafkaError
    from penstock.base.types import TopicPartition
    from penstock.client.admin import AdminErrors
    from penstock.client.errors import UnsupportedByBroker

    path = options.text("offset-json-file")
    before: dict[TopicPartition, int] = {}
    for topic, partition, entry in partition_entries(path, read_json(path)):
        offset = entry.get("offset")
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < -1:
            raise Failed(f"{path}: the offset of {topic}-{partition} is {offset!r} and no number from -1 on")
        before[TopicPartition(topic, partition)] = offset
    with open_admin(options) as admin:
        print("Executing records delete operation")
        failed: dict[TopicPartition, KafkaError] = {}
        try:
            done = admin.delete_records(before)
        except UnsupportedByBroker:
            raise
        except AdminErrors as errors:
            done, failed = errors.successes, errors.failures
        except KafkaError as error:
            if len(before) != 1:
                raise
            done, failed = {}, dict.fromkeys(before, error)
    print("Records delete operation completed:")
    for tp in sorted(before):
        if tp in failed:
            print(f"partition: {tp}\terror: {failed[tp].message}")
        else:
            print(f"partition: {tp}\tlow_watermark: {done[tp]}")
    return 1 if failed else 0


TOOL = Tool(
    name="kafka-delete-records",
    about="This tool helps to delete records of the given partitions down to the specified offset.",
    run=_run,
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("offset-json-file", 'The offsets: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], '
               '"version": 1}; -1 deletes all records.', metavar="file"),
    ),
)  # fmt: skip


def main() -> NoReturn:
    run_tool(TOOL)


if __name__ == "__main__":
    main()
