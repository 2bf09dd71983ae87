"""What a reader or writer was asked for, in the words of Spark's Kafka connector.

`kafka.*` go to the client as they are. Options are checked all at once, here, so that a wrong one is told before
anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from penstock.base.types import TopicPartition
from penstock.sql.spark.source.offsets import EARLIEST, LATEST, Offsets, parse_offsets, parse_partitions

_OURS: Final = ("auto.offset.reset", "enable.auto.commit", "interceptor.classes", "key.deserializer",
                "value.deserializer", "key.serializer", "value.serializer")  # fmt: skip
"""Client settings that the source decides by itself, as the connector does."""

ROWS_PER_TRIGGER_MAX: Final = 1_000_000
PLAN_TIMEOUT_MS: Final = 30_000
WATCH_MS: Final = 1_000
"""How long a query without new records waits for one."""

_READING: Final[dict[str, object]] = {"isolation.level": "read_committed", "allow.auto.create.topics": False}
"""Where the options say nothing else. Reading makes no topic: a deleted one would come back, empty."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRule:
    """Where to begin or end. `offsets` and `timestamps` name every partition; `timestamp` (ms) counts for all.

    `strategy`: what to do where no record is as late as the timestamp.
    """

    kind: Literal["earliest", "latest", "offsets", "timestamps", "timestamp"]
    offsets: Offsets = field(default_factory=dict)
    timestamp: int = 0
    strategy: Literal["error", "latest"] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Exactly one of `topics`, `pattern` and `assigned` is given.

    `typed` is the JSON of what is wanted of a declared source.
    """

    client: dict[str, str]
    starting: OffsetRule
    ending: OffsetRule
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    rows_per_trigger_max: int = ROWS_PER_TRIGGER_MAX
    rows_per_trigger_min: int = 0
    trigger_delay_max_s: float = 900.0
    poll_timeout_s: float = 120.0
    metadata_ttl_s: float = 10.0
    commit_group: str | None = None
    typed: str | None = None
    processing_log: str | None = None
    logger: str = "processing"

    def reading_client(self) -> dict[str, object]:
        """Of a task: ranges that exist are fetched, so that a broker has nothing to wait for."""
        return {
            **_READING,
            "fetch.max.wait.ms": 10,
            "max.partition.fetch.bytes": 4 << 20,
            **self.client,
            "auto.offset.reset": "none",
            "enable.auto.commit": False,
        }

    def planning_client(self) -> dict[str, object]:
        """Of the planner, which asks for offsets and commits them."""
        group: dict[str, object] = {} if self.commit_group is None else {"group.id": self.commit_group}
        return {
            **_READING,
            "default.api.timeout.ms": PLAN_TIMEOUT_MS,
            **self.client,
            **group,
            "enable.auto.commit": False,
        }

    def watching_client(self) -> dict[str, object]:
        """Of the planner's watch: it only waits for records, and needs none of them."""
        return {
            **_READING,
            **self.client,
            "fetch.max.wait.ms": WATCH_MS,
            "fetch.min.bytes": 1,
            "max.partition.fetch.bytes": 1,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """`topic` None: every row names its own."""

    client: dict[str, str]
    topic: str | None = None
    include_headers: bool = False


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Raises ValueError for what is missing or not understood."""
    given = _Given(options)
    topics = tuple(name.strip() for name in (given.text("subscribe") or "").split(",") if name.strip())
    pattern, assign = given.text("subscribePattern"), given.text("assign")
    if sum(map(bool, (topics, pattern, assign))) != 1:
        raise ValueError("give exactly one of the options subscribe, subscribePattern and assign: which topics to read")
    if streaming and any(name in options for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")):
        raise ValueError("a stream has no end: leave out endingOffsets, endingOffsetsByTimestamp and endingTimestamp")
    return ReadOptions(
        client=_client(options),
        topics=topics,
        pattern=pattern,
        assigned=parse_partitions(assign, "assign") if assign else (),
        starting=_rule(given, "starting", default="latest" if streaming else "earliest"),
        ending=_rule(given, "ending", default="latest"),
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        include_headers=given.flag("includeHeaders", default=False),
        min_partitions=given.number("minPartitions"),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        rows_per_trigger_max=given.number("maxOffsetsPerTrigger") or ROWS_PER_TRIGGER_MAX,
        rows_per_trigger_min=given.number("minOffsetsPerTrigger") or 0,
        trigger_delay_max_s=_duration_s(given.text("maxTriggerDelay") or "15m"),
        poll_timeout_s=(given.number("kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
        metadata_ttl_s=(given.number("partition.metadata.cache.ttl.ms") or 10_000) / 1000,
        commit_group=given.text("penstock.commit.group"),
        typed=given.text("penstock.source"),
        processing_log=given.text("penstock.processing.log"),
        logger=given.text("penstock.logger") or "processing",
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    given = _Given(options)
    return WriteOptions(
        client=_client(options),
        topic=given.text("topic"),
        include_headers=given.flag("includeHeaders", default=False),
    )


def _client(options: Mapping[str, str]) -> dict[str, str]:
    client = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
    if "bootstrap.servers" not in client:
        raise ValueError(
            "the option kafka.bootstrap.servers is missing: the address of a broker, such as localhost:9092"
        )
    refused = sorted(name for name in _OURS if name in client)
    if refused:
        named = ", ".join(f"kafka.{name}" for name in refused)
        raise ValueError(f"the source decides {named} by itself: leave that out (startingOffsets says where to begin)")
    return client


def _rule(given: _Given, which: str, *, default: Literal["earliest", "latest"]) -> OffsetRule:
    strategy: Literal["error", "latest"] = "error"
    if (
        which == "ending"
        or given.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error") == "latest"
    ):
        strategy = "latest"
    timestamp = given.number(f"{which}Timestamp")
    if timestamp is not None:
        return OffsetRule(kind="timestamp", timestamp=timestamp, strategy=strategy)
    by_time = given.text(f"{which}OffsetsByTimestamp")
    if by_time:
        return OffsetRule(
            kind="timestamps", offsets=parse_offsets(by_time, f"{which}OffsetsByTimestamp"), strategy=strategy
        )
    text = given.text(f"{which}Offsets") or default
    if text.lower() in ("earliest", "latest"):
        return OffsetRule(kind="earliest" if text.lower() == "earliest" else "latest")
    offsets = parse_offsets(text, f"{which}Offsets")
    if which == "ending" and EARLIEST in offsets.values():
        raise ValueError("option endingOffsets: a partition cannot end at the earliest offset (-2)")
    if any(offset < EARLIEST for offset in offsets.values()):
        raise ValueError(
            f"option {which}Offsets: an offset is a number from 0 on, {LATEST} (latest) or {EARLIEST} (earliest)"
        )
    return OffsetRule(kind="offsets", offsets=offsets)


class _Given:
    """Options as text, flags, numbers; a value that is none of these names its option."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def text(self, name: str) -> str | None:
        return self._options.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def number(self, name: str) -> int | None:
        return self._read(name, int, "a whole number")

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = (self.text(name) or default).lower()
        if value not in allowed:
            raise ValueError(f"option {name}: {value!r} is none of {', '.join(allowed)}")
        return value

    def _read(self, name: str, read: Callable[[str], T], wanted: str) -> T | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return read(text)
        except ValueError:
            raise ValueError(f"option {name}: {text!r} is not {wanted}") from None


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _duration_s(text: str) -> float:
    """Spark's times: 15m, 30s, 500ms."""
    unit = text.strip().lstrip("0123456789").strip()
    digits = text.strip()[: len(text.strip()) - len(unit)].strip() if unit else text.strip()
    if not digits.isdigit() or (unit and unit not in _UNITS):
        raise ValueError(f"option maxTriggerDelay: {text!r} is no duration; write 15m, 30s or 500ms")
    return int(digits) * _UNITS.get(unit, 0.001)


def typed_options(given: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark wants them: text; what is None is left out."""
    return {name: _option_text(value) for name, value in given.items() if value is not None}


def _option_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
