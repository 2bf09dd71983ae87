"""Records that Apache Kafka writes for itself, as our dump tool and Kafka's own show them: line by line the same."""

from __future__ import annotations

import itertools
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.cli.kafka import cluster_metadata_layouts, control_records, newer_group_layouts, remote_log_layouts
from penstock.cli.kafka import share_group_layouts as shares
from penstock.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    Admin,
    AlterConfigOp,
    ConfigResource,
    NewTopic,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
)
from penstock.protocol.codec import encode
from penstock.protocol.primitives import legacy_string, varint
from penstock.protocol.schema import Message, Wire, element_class, wire_fields
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.compat.kafka_tools import Done, java, ours
from tests.support.brokers import KafkaBroker

pytestmark = pytest.mark.xdist_group("dump")

ID = UUID("01234567-89ab-4def-8123-456789abcdef")
LOG = "00000000000000000000.log"
LEFT = {
    *("REGISTER_BROKER", "CLEAR_ELR", "BROKER_REGISTRATION_CHANGE", "REGISTER_CONTROLLER", "FEATURE_LEVEL"),
    *("TOPIC", "PARTITION", "CONFIG", "REMOVE_TOPIC", "PRODUCER_IDS", "NO_OP", "BEGIN_TRANSACTION", "END_TRANSACTION"),
    *("CLIENT_QUOTA", "USER_SCRAM_CREDENTIAL", "REMOVE_USER_SCRAM_CREDENTIAL"),
    *("ACCESS_CONTROL_ENTRY", "REMOVE_ACCESS_CONTROL_ENTRY"),
}
"""The kinds of records of which a broker on its own leaves some."""
SAMPLES: dict[str, list[Any]] = {
    "bool": [True, False],
    "int8": [1, -1],
    "int16": [1, -32768],
    "uint16": [9092, 65535],
    "int32": [1, -2147483648],
    "int64": [1, 2**62],
    "float64": [0.5, 1e7, 12345678.9, 1e-5, 100.0],
    "string": ["name", 'ä"\\\n\t/𝄞', ""],
    "bytes": [b"\x00\xff\xfe", b""],
    "uuid": [ID, UUID(int=0)],
}


def same(files: Path, *options: str) -> Done:
    mine, theirs = (run("dump_log", "--files", str(files), *options) for run in (ours, java))
    assert mine.out.splitlines() == theirs.out.splitlines()
    assert (mine.code, theirs.code) == (0, 0)
    return mine


def filled(layout: type[Message], version: int, turn: int) -> Message:
    """A message with a value in each field that the version has; another turn brings other ones."""
    turns = itertools.count(turn)
    values = {
        field.name: _value(layout, wire, version, next(turns))
        for field, wire in wire_fields(layout)
        if wire.exists_in(version)
    }
    return layout(**values)


def _value(owner: type[Message], wire: Wire, version: int, turn: int) -> Any:
    if turn % 5 == 4 and wire.nullable_in(version):
        return None
    if wire.is_array:
        return [_element(owner, wire, version, turn + each) for each in range(turn % 3)]
    return _element(owner, wire, version, turn)


def _element(owner: type[Message], wire: Wire, version: int, turn: int) -> Any:
    nested = element_class(owner, wire)
    if nested is not None:
        return filled(nested, version, turn)
    samples = SAMPLES[wire.element_type]
    return samples[turn % len(samples)]


def every(layout: type[Message], version_max: int) -> Iterator[tuple[int, Message]]:
    """Messages of every version: the empty one, and several that are full."""
    for version in range(version_max + 1):
        yield version, layout()
        for turn in range(6):
            yield version, filled(layout, version, turn)


def write_log(directory: Path, records: list[tuple[bytes | None, bytes | None]], *, control: bool = False) -> Path:
    file = directory / LOG
    file.write_bytes(build_batch([Record(1000, key, value) for key, value in records], control=control, leader_epoch=3))
    return file


def framed(kinds: dict[int, cluster_metadata_layouts.MetadataKind]) -> list[tuple[None, bytes]]:
    return [
        (None, varint(1) + varint(number) + varint(version) + encode(message, version, True))
        for number, kind in kinds.items()
        for version, message in every(kind.layout, kind.version_max)
    ]


def test_every_kind_of_cluster_metadata(tmp_path: Path) -> None:
    records = framed(cluster_metadata_layouts.KINDS)
    file = write_log(tmp_path, list(records))
    shown = same(file, "--cluster-metadata-decoder")
    same(file, "--cluster-metadata-decoder", "--skip-record-metadata")
    assert shown.out.count(" payload: {") == len(records)
    assert not ours("dump_log", "--files", str(file), "--print-data-log").code


def test_every_kind_of_remote_log_metadata(tmp_path: Path) -> None:
    names = {"remote_log_segment_state": 3, "remote_partition_delete_state": 2}
    records: list[tuple[bytes | None, bytes | None]] = []
    for number, kind in remote_log_layouts.KINDS.items():
        for _, message in every(kind.layout, 0):
            for name in names.keys() & {field.name for field, _ in wire_fields(kind.layout)}:
                setattr(message, name, len(records) % (names[name] + 1))
            if isinstance(message, remote_log_layouts.SegmentLayout | remote_log_layouts.SegmentSnapshotLayout):
                # Kafka takes no segment without epochs or with an end before its start.
                message.start_offset, message.end_offset = 5, 7
                message.segment_leader_epochs += [
                    remote_log_layouts.LeaderEpochLayout(leader_epoch=epoch, offset=epoch * 2) for epoch in (9, 3)
                ]
            records.append((None, varint(1) + varint(number) + varint(0) + encode(message, 0, True)))
    shown = same(write_log(tmp_path, records), "--remote-log-metadata-decoder")
    assert shown.out.count(" payload: Remote") == len(records)


def test_every_kind_of_share_group_state(tmp_path: Path) -> None:
    key = legacy_string("shäre") + ID.bytes + struct.pack(">i", 7)
    records: list[tuple[bytes | None, bytes | None]] = [
        (struct.pack(">h", number) + key, b"\0\0" + encode(message, 0, True))
        for number, layout in enumerate((shares.ShareSnapshotLayout, shares.ShareUpdateLayout))
        for _, message in every(layout, 0)
    ]
    records += [(records[0][0], None), (b"\0\x63", b"")]
    shown = same(write_log(tmp_path, records), "--share-group-state-decoder")
    assert shown.out.count('payload: {"version":"0","data":{') == len(records) - 2
    assert "payload: <DELETE>" in shown.out


def test_members_of_groups_with_both_protocols(tmp_path: Path) -> None:
    key = b"\0\5" + legacy_string("group") + legacy_string("member")
    records = [
        (key, b"\0\0" + encode(message, 0, True)) for _, message in every(newer_group_layouts.GroupMemberLayout, 0)
    ]
    shown = same(write_log(tmp_path, list(records)), "--offsets-decoder").out
    assert '"classicMemberMetadata":null' in shown
    assert '"classicMemberMetadata":{"sessionTimeoutMs":' in shown
    assert sum("classicMemberMetadata" not in line for line in shown.splitlines() if "payload" in line) == 1


def test_every_kind_of_control_record(tmp_path: Path) -> None:
    layouts = {
        2: control_records.LeaderChangeLayout,
        3: control_records.SnapshotHeaderLayout,
        4: control_records.SnapshotFooterLayout,
        5: control_records.KRaftVersionLayout,
        6: control_records.VotersLayout,
    }
    records = [(b"\0\0\0\x63", b"")]
    for number, layout in layouts.items():
        for _, message in every(layout, 0):
            message.version = 0  # type: ignore[attr-defined]
            records.append((struct.pack(">hh", 0, number), encode(message, 0, True)))
    file = write_log(tmp_path, list(records), control=True)
    for options in (("--deep-iteration",), ("--cluster-metadata-decoder",), ("--print-data-log",), ()):
        same(file, *options)
    same(file, "--cluster-metadata-decoder", "--skip-record-metadata")


def test_what_cannot_be_decoded_is_said_and_skipped(tmp_path: Path) -> None:
    whole = varint(1) + varint(2) + varint(0) + encode(cluster_metadata_layouts.TopicLayout(name="t"), 0, True)
    bad = [None, b"", b"\x00", b"\x02\x02\x00", b"\x01", b"\x01\x0d\x00", b"\x01\x63\x00", whole[:-3], whole + b"\0"]
    file = write_log(tmp_path, [(None, each) for each in [whole, *bad, whole]])
    for decoder, prefix in (
        ("--cluster-metadata-decoder", "payload: Error at {}, skipping. "),
        ("--remote-log-metadata-decoder", "payload: Error at offset {}, skipping. "),
    ):
        mine, theirs = (run("dump_log", "--files", str(file), decoder) for run in (ours, java))
        assert (mine.code, theirs.code) == (0, 0)
        assert len(mine.out.splitlines()) == len(theirs.out.splitlines())
        for offset in range(1, len(bad) + 1):
            for shown in (mine, theirs):
                assert prefix.format(offset) in shown.out.splitlines()[3 + offset]
        if decoder == "--cluster-metadata-decoder":
            assert mine.out.splitlines()[-1] == theirs.out.splitlines()[-1]


def leave_traces(bootstrap: str) -> None:
    """What an administrator and a producer do leaves its records with the controller."""
    topic = ConfigResource.topic("kept")
    user, everybody = QuotaEntity.of(user="ann"), QuotaEntity.of(user=None, client_id="app")
    acl = AclBinding(
        resource_type=ResourceType.TOPIC, resource_name="kept", principal="User:ann", operation=AclOperation.READ
    )
    secret = ScramCredential(user="ann", password="secret", mechanism=ScramMechanism.SCRAM_SHA_256)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name="kept", num_partitions=2, configs={"retention.ms": "100000"})])
        admin.create_topics(["lost"])
        admin.create_partitions({"kept": 3})
        admin.incremental_alter_configs({topic: {"segment.bytes": "2000000"}})
        admin.incremental_alter_configs({topic: [AlterConfigOp.delete("retention.ms")]})
        admin.alter_client_quotas({user: {"producer_byte_rate": 2e7}, everybody: {"request_percentage": 12.5}})
        admin.alter_client_quotas({user: {"producer_byte_rate": None}})
        admin.create_acls([acl])
        admin.delete_acls([AclFilter.of(acl)])
        admin.alter_user_scram_credentials([secret])
        admin.alter_user_scram_credentials([ScramDeletion(user="ann", mechanism=ScramMechanism.SCRAM_SHA_256)])
        admin.delete_topics(["lost"])
    line = ("--topic", "kept", "--num-records", "1", "--record-size", "9", "--throughput", "-1")
    assert not ours("producer_perf_test", "--bootstrap-server", bootstrap, *line, "--transactional-id", "t").code


@pytest.fixture(params=["fixed-voters", "standalone"])
def metadata_log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The controller's log after a start, some work and a stop; with the voters in the settings, or in the log."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "transaction.state.log.num.partitions": "1",
        "metadata.log.max.record.bytes.between.snapshots": "3000",
    }
    broker = KafkaBroker(tmp_path / "kafka", settings)
    if request.param == "standalone":
        broker.overrides["controller.quorum.voters"] = ""
        broker.overrides["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{broker.controller_port}"
        broker.format_arguments = ["--standalone"]
    try:
        broker.start()
        leave_traces(broker.bootstrap)
        deadline = time.monotonic() + 20
        while not taken(broker.partition_dir("__cluster_metadata")) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        broker.stop()
    return broker.partition_dir("__cluster_metadata")


def taken(directory: Path) -> list[Path]:
    """Snapshots which the controller made while it ran."""
    return [each for each in directory.glob("*.checkpoint") if re.fullmatch(r"0*[1-9]\d*-\d+", each.stem)]


def test_what_a_controller_leaves(metadata_log: Path, request: pytest.FixtureRequest) -> None:
    snapshots = [*sorted(metadata_log.glob("*.checkpoint")), *metadata_log.parent.glob("bootstrap.checkpoint")]
    assert taken(metadata_log)
    text = ""
    for file in (metadata_log / LOG, *snapshots):
        text += same(file, "--cluster-metadata-decoder").out
        same(file, "--cluster-metadata-decoder", "--skip-record-metadata")
        same(file, "--deep-iteration")
    kinds = set(re.findall(r'payload: \{"type":"(\w+)_RECORD"', text))
    assert kinds >= LEFT, sorted(kinds)
    control = set(re.findall(r"headerKeys: \[\] (?!payload)(\w+:?) \{", text))
    voters = {"KRaftVersion", "KRaftVoters"} if "standalone" in request.node.name else set()
    assert control == {"LeaderChange:", "SnapshotHeader", "SnapshotFooter"} | voters
    assert "Snapshot end offset: " in text
    assert "Error at" not in text


def test_a_snapshot_says_by_its_name_where_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "mine.checkpoint"
    file.write_bytes(b"")
    done = ours("dump_log", "--files", str(file))
    assert done.code == 1
    assert "such as 00000000000000000000-0000000000.checkpoint" in done.err
