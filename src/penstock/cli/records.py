"""`penstock records`: delete records from the start of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.cli import parsing
from penstock.cli.completion import complete_partitions
from penstock.cli.confirm import confirm, yes_option
from penstock.cli.connection import Connection
from penstock.cli.connection_options import connection_options
from penstock.cli.failures import REMEDIES, fail, sentences
from penstock.cli.nouns import HELP, Noun
from penstock.cli.output import Output, output_option

_ONLY_DELETE: Final = (
    "only topics whose cleanup.policy has `delete` let records be deleted, and this one is compacted: write tombstones "
    "or change it (`penstock configs set topic NAME cleanup.policy=delete`)"
)


@click.group("records", cls=Noun, context_settings=HELP)
def command() -> None:
    """Delete records from the start of partitions."""


@command.command()
@click.argument(
    "bounds",
    nargs=-1,
    required=True,
    metavar="TOPIC:PARTITION=OFFSET...",
    shell_complete=complete_partitions("="),
)
@yes_option
@output_option
@connection_options
def delete(connection: Connection, output: Output, *, bounds: tuple[str, ...], yes: bool) -> None:
    """Delete the records before an offset of each partition; -1 or `end` stands for all."""
    wanted = {parsing.partition(name): _offset(name, text) for name, text in parsing.pairs(bounds, "").items()}
    with connection.admin() as admin:
        admin.describe_topics(sorted({tp.topic for tp in wanted}))
        _check_ends(admin, wanted)
        confirm("delete " + "; ".join(_sentence(tp, offset) for tp, offset in wanted.items()), yes=yes)
        try:
            left = admin.delete_records(wanted)
        except KafkaError as error:
            fail("; ".join(_explained(error)))
    rows = [{"topic": tp.topic, "partition": tp.partition, "first_offset": left[tp]} for tp in sorted(wanted)]
    output.rows(rows, ["topic", "partition", "first_offset"])


def _explained(error: KafkaError) -> list[str]:
    """The sentences for what failed. The answer has no words of the broker, and one code has but one meaning here."""
    found = sentences(error, REMEDIES)
    failures = getattr(error, "failures", None) or {None: error}
    for number, each in enumerate(failures.values()):
        if each.code is ErrorCode.POLICY_VIOLATION:
            where, _, _ = found[number].partition(": ")
            found[number] = f"{where}: {_ONLY_DELETE}"
    return found


def _check_ends(admin: Any, wanted: Mapping[TopicPartition, int]) -> None:
    """Before anything is deleted: an offset behind the end of one partition would be refused after the others."""
    from penstock import OffsetSpec

    for tp, end in admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST)).items():
        if wanted[tp] > end.offset:
            fail(f"partition {tp} ends at offset {end.offset}, before {wanted[tp]}: write `end` for all records")


def _offset(name: str, text: str) -> int:
    if text in ("end", "-1"):
        return -1
    if not text.isascii() or not text.isdecimal():
        raise click.UsageError(f"{name}={text}: {text!r} is no offset: write a number, or `end` for all records")
    return int(text)


def _sentence(tp: TopicPartition, offset: int) -> str:
    return f"all records of {tp}" if offset < 0 else f"records before offset {offset} of {tp}"
