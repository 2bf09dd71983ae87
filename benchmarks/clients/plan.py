"""Who is measured, by which loads, and what is wanted of the numbers. All of it is data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

OURS: Final = "penstock"
OURS_AIO: Final = "penstock.aio"
CONFLUENT: Final = "confluent-kafka"
AIOKAFKA: Final = "aiokafka"
KAFKA_PYTHON: Final = "kafka-python"

DRIVERS: Final = {
    OURS: "penstock_blocking",
    OURS_AIO: "penstock_aio",
    CONFLUENT: "confluent",
    AIOKAFKA: "aio_kafka",
    KAFKA_PYTHON: "kafka_python",
}
SPEEDS: Final = {OURS: 1.0, OURS_AIO: 1.0, CONFLUENT: 1.0, AIOKAFKA: 0.3, KAFKA_PYTHON: 0.1}
"""The slower a client, the fewer records it gets, so that every load takes seconds and none of them minutes: the
quickest must run long enough that its start and what it had fetched before do not count."""


class Kind(Enum):
    """What a load does to its topic, which decides how its count is checked."""

    PRODUCE = "produce"
    CONSUME = "consume"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load; `function` is its name in the drivers. A load by batch is ours alone, beside the other's records."""

    name: str
    function: str
    kind: Kind
    count: int
    value_bytes: int = 100
    beside: str = ""
    wanted: str = ""
    shows_memory: bool = False


RECORD_BY_RECORD: Final = ">= 5x kafka-python, >= 1x aiokafka"
BY_BATCH: Final = ">= 3x confluent"
LOADS: Final = (
    Load(name="produce, 100 B", function="produce", kind=Kind.PRODUCE, count=1_000_000, wanted=RECORD_BY_RECORD,
         shows_memory=True),
    Load(name="produce, 100 B with keys", function="produce_keyed", kind=Kind.PRODUCE, count=1_000_000,
         wanted=RECORD_BY_RECORD),
    Load(name="produce, 1 KB", function="produce", kind=Kind.PRODUCE, count=500_000, value_bytes=1000,
         wanted=RECORD_BY_RECORD),
    Load(name="send and wait, 100 B", function="latency", kind=Kind.LATENCY, count=2_000),
    Load(name="consume, 100 B", function="consume", kind=Kind.CONSUME, count=4_000_000, wanted=RECORD_BY_RECORD,
         shows_memory=True),
    Load(name="consume one by one, 100 B", function="iterate", kind=Kind.CONSUME, count=2_000_000,
         wanted=RECORD_BY_RECORD),
    Load(name="consume, 1 KB", function="consume", kind=Kind.CONSUME, count=1_500_000, value_bytes=1000,
         wanted=RECORD_BY_RECORD),
    Load(name="send_many, list, 100 B", function="send_many_list", kind=Kind.PRODUCE, count=4_000_000,
         beside="produce, 100 B", wanted=BY_BATCH),
    Load(name="send_many, list, 1 KB", function="send_many_list", kind=Kind.PRODUCE, count=1_000_000, value_bytes=1000,
         beside="produce, 1 KB", wanted=BY_BATCH),
    Load(name="send_many, Arrow, 100 B", function="send_many_arrow", kind=Kind.PRODUCE, count=4_000_000,
         beside="produce, 100 B", wanted=BY_BATCH, shows_memory=True),
    Load(name="send_many, Arrow, 1 KB", function="send_many_arrow", kind=Kind.PRODUCE, count=1_000_000,
         value_bytes=1000, beside="produce, 1 KB", wanted=BY_BATCH),
    Load(name="consume_arrow, 100 B", function="consume_arrow", kind=Kind.CONSUME, count=8_000_000,
         beside="consume, 100 B", wanted=BY_BATCH, shows_memory=True),
    Load(name="consume_arrow, 1 KB", function="consume_arrow", kind=Kind.CONSUME, count=1_500_000, value_bytes=1000,
         beside="consume, 1 KB", wanted=BY_BATCH),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One line of the table for each load that gives it. `higher` says which way is better."""

    suffix: str
    unit: str
    key: str
    higher: bool = False
    wanted: str = ""


RATE: Final = Measure(suffix="", unit="k records/s", key="rate", higher=True)
CPU: Final = Measure(suffix=", CPU", unit="s per million", key="cpu", wanted="<= 1x aiokafka")
MEMORY: Final = Measure(suffix=", memory", unit="MB", key="memory_megabytes")
LATENCIES: Final = (
    Measure(suffix=", p50", unit="ms", key="p50_ms", wanted="<= 1x aiokafka"),
    Measure(suffix=", p99", unit="ms", key="p99_ms"),
)


def measures(load: Load) -> tuple[Measure, ...]:
    if load.kind is Kind.LATENCY:
        return LATENCIES
    return (RATE, CPU, MEMORY) if load.shows_memory else (RATE, CPU)


def contenders(load: Load, clients: list[str]) -> list[str]:
    return [client for client in clients if not load.beside or client == OURS]


def count_for(load: Load, client: str, scale: float) -> int:
    share = 1.0 if load.kind is Kind.LATENCY else SPEEDS[client]
    return max(int(load.count * share * scale), 100)
