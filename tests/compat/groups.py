"""Consumer groups whose members run in processes of their own, and a watch on what these members say.

A ``Host`` is a member program (see ``tests/compat/members``); it may hold members of many groups. A ``GroupWatch`` is
told every event of a group's members. It knows who owns what, which records were delivered, and at the end whether a
partition ever had two owners at once.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from tests.support import peers

ROOT = Path(__file__).resolve().parent.parent.parent
SESSION_MS = 15_000
# For members that are going to crash: the group waits so long for them.
SHORT_SESSION_MS = 2_000
STABLE_TIMEOUT_S = 40.0
ADMIN_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A client's member program and what the client can do. Its first assignor is the one of its large group."""

    name: str
    command: Callable[[], list[str | Path]]
    assignors: tuple[str, ...]
    is_static: bool = True


def _python(module: str) -> Callable[[], list[str | Path]]:
    return lambda: [sys.executable, "-m", f"tests.compat.members.{module}"]


def _java() -> list[str | Path]:
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return [peers.java(), *options, "-cp", f"{peers.java_classes()}:{peers.kafka_jars()}/*", "Members"]


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name="confluent-kafka",
            command=_python("confluent_members"),
            assignors=("cooperative-sticky", "range", "roundrobin"),
        ),
        Program(name="aiokafka", command=_python("aiokafka_members"), assignors=("roundrobin", "range", "sticky")),
        Program(
            name="kafka-python",
            command=_python("kafka_python_members"),
            assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
        ),
        Program(name="java", command=_java, assignors=("cooperative-sticky", "range", "roundrobin", "sticky")),
        Program(
            name="franz-go",
            command=lambda: [peers.go_programs() / "franz-members"],
            assignors=("cooperative-sticky", "range", "roundrobin", "sticky"),
        ),
        Program(
            name="sarama",
            command=lambda: [peers.go_programs() / "sarama-members"],
            assignors=("range", "roundrobin", "sticky"),
        ),
        Program(
            name="kafkajs",
            command=lambda: [peers.node(), "--no-warnings", peers.node_programs() / "members.mjs"],
            assignors=("kafkajs",),
            is_static=False,
        ),
    )
}


@dataclass(slots=True)
class MemberView:
    """What one member last said."""

    owned: frozenset[int] | None = None
    generation: int = -1
    # How often it was given a new assignment, be it the same.
    assignments: int = 0
    is_leaving: bool = False
    has_left: bool = False


@dataclass(slots=True)
class Interval:
    """A member's time as owner of a partition, in milliseconds; ``end`` None while it lasts."""

    member: str
    start: int
    end: int | None = None


@dataclass(slots=True)
class GroupWatch:
    """One group: the events of its members in, questions about the whole out."""

    group: str
    topic: str
    partitions: int
    assignor: str
    members: dict[str, MemberView] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _delivered: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _intervals: dict[int, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    _owners: dict[tuple[int, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, event: dict[str, Any]) -> None:
        with self._lock:
            name, member = event["member"], self.members[event["member"]]
            match event["event"]:
                case "owned":
                    self._handle_owned(name, member, event)
                case "records":
                    for partition, offsets in event["offsets"].items():
                        self._delivered[int(partition)].update(offsets)
                case "left":
                    member.has_left = True
                    self._close_intervals(name, member.owned or (), event["time"])
                    member.owned = frozenset()
                case "failed":
                    self.failures.append(f"{name}: {event['error']}")

    def _handle_owned(self, name: str, member: MemberView, event: dict[str, Any]) -> None:
        owned, before = frozenset(event["partitions"]), member.owned or frozenset()
        self._close_intervals(name, before - owned, event["time"])
        for partition in owned - before:
            self._intervals[partition].append(Interval(name, event["time"]))
        if event["generation"] >= 0:
            member.generation = event["generation"]
            for partition in owned:
                self._owners[event["generation"], partition].add(name)
        member.owned = owned
        member.assignments += 1

    def _close_intervals(self, name: str, partitions: Iterable[int], at: int) -> None:
        for partition in partitions:
            for interval in self._intervals[partition]:
                if interval.member == name and interval.end is None:
                    interval.end = at

    def crashed(self, name: str) -> None:
        with self._lock:
            self._close_intervals(name, self.members[name].owned or (), int(time.time() * 1000))
            del self.members[name]

    def current(self) -> dict[str, frozenset[int]]:
        """By member that has not left: what it owns."""
        with self._lock:
            return {name: one.owned or frozenset() for name, one in self.members.items() if not one.has_left}

    def generation(self) -> int:
        with self._lock:
            return max((one.generation for one in self.members.values()), default=-1)

    def assignments(self) -> dict[str, int]:
        with self._lock:
            return {name: one.assignments for name, one in self.members.items() if not one.has_left}

    def is_complete(self) -> bool:
        """Whether every member has spoken and every partition has exactly one owner."""
        with self._lock:
            living = [one for one in self.members.values() if not one.has_left]
            if not living or any(one.owned is None or one.is_leaving for one in living):
                return False
            owned = sorted(itertools.chain.from_iterable(one.owned or () for one in living))
            return owned == list(range(self.partitions))

    def delivered_count(self) -> int:
        with self._lock:
            return sum(len(offsets) for offsets in self._delivered.values())

    def delivered(self, partition: int) -> list[int]:
        with self._lock:
            return sorted(self._delivered[partition])

    def missing(self, end_offsets: dict[int, int]) -> dict[int, list[int]]:
        """By partition, the offsets below its end which no member has reported."""
        with self._lock:
            gaps = {partition: set(range(end)) - self._delivered[partition] for partition, end in end_offsets.items()}
        return {partition: sorted(gap)[:10] for partition, gap in gaps.items() if gap}

    def check_single_owners(self) -> None:
        """No partition had two owners in one generation, nor at one time."""
        with self._lock:
            twice = {place: owners for place, owners in self._owners.items() if len(owners) > 1}
            assert not twice, f"{self.group}: owned twice in a generation: {twice}"
            for partition, intervals in self._intervals.items():
                ordered = sorted(intervals, key=lambda one: one.start)
                for first, second in itertools.pairwise(ordered):
                    apart = first.end is not None and first.end <= second.start
                    assert apart, f"{self.group}: partition {partition} had two owners: {first}, {second}"


class Host:
    """A running member program."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self._watches: dict[str, GroupWatch] = {}
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(part) for part in program.command()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                start_new_session=True,
            )
        self._pump = threading.Thread(target=self._read, daemon=True)
        self._pump.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A kill may cut the last line.
            if line.endswith(b"\n"):
                event = json.loads(line)
                self._watches[event["member"]].handle(event)

    def _send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def join(
        self,
        watch: GroupWatch,
        bootstrap: str,
        member: str | None = None,
        *,
        session_ms: int = SESSION_MS,
        instance: str | None = None,
        isolation: str = "read_uncommitted",
    ) -> str:
        name = member or f"{self.program.name}-{next(_numbers)}"
        watch.members[name] = MemberView()
        self._watches[name] = watch
        self._send(
            op="join",
            member=name,
            bootstrap=bootstrap,
            group=watch.group,
            topic=watch.topic,
            assignor=watch.assignor,
            session_ms=session_ms,
            instance=instance,
            isolation=isolation,
        )
        return name

    def leave(self, member: str) -> None:
        self._watches[member].members[member].is_leaving = True
        self._send(op="leave", member=member)

    def members_of(self, watch: GroupWatch) -> list[str]:
        """Its members which have not left."""
        return [name for name, one in self._watches.items() if one is watch and name in watch.current()]

    def crash(self) -> None:
        """kill -9: members vanish without a word."""
        self.kill()
        for name, watch in self._watches.items():
            if name in watch.members:
                watch.crashed(name)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        self._pump.join(10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def complaints(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


_numbers = itertools.count()


def eventually(
    condition: Callable[[], bool], timeout_s: float, what: Callable[[], str], interval_s: float = 0.05
) -> float:
    """Waits; returns the seconds it took."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > timeout_s:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what()}")
        time.sleep(interval_s)
    return time.monotonic() - started


class GroupAdmin:
    """Describes groups by confluent-kafka's admin client."""

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap})

    def describe(self, group: str) -> Any:
        described = self._client.describe_consumer_groups([group], request_timeout=ADMIN_TIMEOUT_S)
        return described[group].result(ADMIN_TIMEOUT_S + 5)

    def agrees(self, watch: GroupWatch) -> bool:
        """Whether the broker tells the same owners as the members do, and that the group is stable."""
        if not watch.is_complete():
            return False
        described = self.describe(watch.group)
        told = sorted(sorted(one.partition for one in each.assignment.topic_partitions) for each in described.members)
        return described.state == ConsumerGroupState.STABLE and told == sorted(map(sorted, watch.current().values()))

    def wait_until_stable(self, watches: Sequence[GroupWatch], timeout_s: float = STABLE_TIMEOUT_S) -> float:
        """Seconds until all the groups are stable and complete."""
        waiting = list(watches)

        def settled() -> bool:
            waiting[:] = [watch for watch in waiting if not self.agrees(watch)]
            return not waiting

        def tell() -> str:
            return "; ".join(self._tell(watch) for watch in waiting)

        return eventually(settled, timeout_s, tell)

    def _tell(self, watch: GroupWatch) -> str:
        described = self.describe(watch.group)
        owned = {name: sorted(partitions) for name, partitions in watch.current().items()}
        told = f"{described.state}, {len(described.members)} members"
        return f"{watch.group} ({told}), members say {owned}, failures {watch.failures}"
