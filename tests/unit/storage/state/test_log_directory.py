"""Lock, identity and clean-shutdown marker of log directories."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.base.system import SystemFiles
from penstock.storage.directories.directory_set import DirectorySet
from penstock.storage.directories.log_directory import (
    CLEAN_SHUTDOWN_FILE,
    META_PROPERTIES,
    LogDirectory,
    LogDirectoryError,
    decode_meta_properties,
    read_broker_epoch,
)

CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def take(*paths: Path, node_id: int = 1, cluster_id: str | None = None) -> DirectorySet:
    directories = DirectorySet([str(path) for path in paths], SystemFiles())
    directories.take(node_id=node_id, cluster_id=cluster_id, rng=random.Random(7))
    return directories


def read_properties(directory: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (directory / META_PROPERTIES).read_text().splitlines())


def test_an_empty_directory_is_initialised_and_keeps_its_identity(tmp_path: Path) -> None:
    directories = take(tmp_path / "a", tmp_path / "b")
    first, second = read_properties(tmp_path / "a"), read_properties(tmp_path / "b")
    assert list(first) == ["version", "cluster.id", "node.id", "directory.id"]
    assert (first["version"], first["node.id"]) == ("1", "1")
    assert first["cluster.id"] == second["cluster.id"] == directories.cluster_id
    assert first["directory.id"] != second["directory.id"]
    directories.release()
    again = take(tmp_path / "a", tmp_path / "b")
    assert again.cluster_id == directories.cluster_id
    assert read_properties(tmp_path / "a") == first
    again.release()


def test_a_new_directory_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    take(tmp_path / "a").release()
    directories = take(tmp_path / "b", tmp_path / "a")
    assert read_properties(tmp_path / "b")["cluster.id"] == read_properties(tmp_path / "a")["cluster.id"]
    directories.release()


def test_a_wanted_cluster_id_is_written(tmp_path: Path) -> None:
    take(tmp_path, cluster_id=CLUSTER).release()
    assert read_properties(tmp_path)["cluster.id"] == CLUSTER


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    take(tmp_path, node_id=3).release()
    with pytest.raises(LogDirectoryError, match=r"belongs to node 3, but this broker is node 1"):
        take(tmp_path, node_id=1)
    take(tmp_path, node_id=3).release()


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    take(tmp_path / "a").release()
    with pytest.raises(LogDirectoryError, match=f"but this broker is in cluster {CLUSTER}"):
        take(tmp_path / "a", cluster_id=CLUSTER)
    take(tmp_path / "b", cluster_id=CLUSTER).release()
    with pytest.raises(LogDirectoryError, match="belongs to cluster"):
        take(tmp_path / "a", tmp_path / "b")


def test_version_0_of_a_zookeeper_kafka_is_accepted_and_kept(tmp_path: Path) -> None:
    (tmp_path / META_PROPERTIES).write_text(
        f"#\n#Thu Jan 01 00:00:00 UTC 2026\nbroker.id=1\nversion=0\ncluster.id={CLUSTER}\n"
    )
    directories = take(tmp_path)
    assert directories.cluster_id == CLUSTER
    properties = read_properties(tmp_path)
    assert (properties["version"], properties["broker.id"]) == ("0", "1")
    assert "directory.id" in properties
    directories.release()
    with pytest.raises(LogDirectoryError, match="node 1"):
        take(tmp_path, node_id=2)


@pytest.mark.parametrize(
    "content",
    [
        "version=2\nnode.id=1\ncluster.id=x\n",
        "version=1\nnode.id=1\n",
        "version=1\ncluster.id=x\n",
        "version=1\nnode.id=one\ncluster.id=x\n",
        "version=1\nnode.id=1\ncluster.id=x\ndirectory.id=?\n",
    ],
)
def test_unusable_meta_properties_are_refused_by_name(tmp_path: Path, content: str) -> None:
    (tmp_path / META_PROPERTIES).write_text(content)
    with pytest.raises(LogDirectoryError, match=META_PROPERTIES):
        take(tmp_path)
    (tmp_path / META_PROPERTIES).unlink()
    take(tmp_path).release()


def test_java_escapes_are_read() -> None:
    meta = decode_meta_properties(b"version=1\nnode.id = 5\ncluster.id=a\\=b\\:c\n", "x")
    assert (meta.node_id, meta.cluster_id) == (5, "a=b:c")


def test_a_second_holder_is_refused_with_directory_and_process(tmp_path: Path) -> None:
    directories = take(tmp_path)
    with pytest.raises(LogDirectoryError, match=rf"{tmp_path} is in use by another broker \(process {os.getpid()}\)"):
        take(tmp_path)
    directories.release()
    take(tmp_path).release()


def test_a_refusal_lets_go_of_the_directories_taken_before(tmp_path: Path) -> None:
    held = take(tmp_path / "b")
    with pytest.raises(LogDirectoryError):
        take(tmp_path / "a", tmp_path / "b")
    take(tmp_path / "a", cluster_id=held.cluster_id).release()
    held.release()


def test_a_lock_that_a_java_broker_holds_is_respected(tmp_path: Path) -> None:
    """Java locks with fcntl and not with flock."""
    program = (
        "import fcntl,sys\n"
        "f=open(sys.argv[1],'w')\n"
        "fcntl.lockf(f,fcntl.LOCK_EX)\n"
        "print('held',flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LogDirectoryError, match="in use"):
            take(tmp_path)
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(10)
    take(tmp_path).release()


def test_a_directory_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="twice"):
        DirectorySet([str(tmp_path), f"{tmp_path}/"], SystemFiles())
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(LogDirectoryError, match="in use"):
        take(tmp_path, tmp_path / "link")


def test_a_directory_that_cannot_be_made_is_offline_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    directories = take(tmp_path / "file", tmp_path / "good")
    assert [directory.path for directory in directories.offline] == [str(tmp_path / "file")]
    assert [directory.path for directory in directories] == [str(tmp_path / "good")]
    directories.release()
    with pytest.raises(LogDirectoryError, match="no log directory can be used"):
        take(tmp_path / "file")


def test_the_clean_shutdown_marker_is_taken_once(tmp_path: Path) -> None:
    directory = LogDirectory(str(tmp_path), SystemFiles())
    assert not directory.take_clean_shutdown_marker()
    directory.write_clean_shutdown_marker(42)
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).read_bytes() == b'{"version":0,"brokerEpoch":42}'
    assert read_broker_epoch(str(tmp_path), SystemFiles()) == 42
    assert directory.take_clean_shutdown_marker()
    assert not (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
    assert not directory.take_clean_shutdown_marker()
    assert read_broker_epoch(str(tmp_path), SystemFiles()) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"brokerEpoch":"x"}'])
def test_an_old_or_torn_marker_still_means_clean_but_names_no_epoch(tmp_path: Path, content: str) -> None:
    (tmp_path / CLEAN_SHUTDOWN_FILE).write_text(content)
    assert read_broker_epoch(str(tmp_path), SystemFiles()) is None
    assert LogDirectory(str(tmp_path), SystemFiles()).take_clean_shutdown_marker()
