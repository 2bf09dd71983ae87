"""What is measured, by which statements, and what is wanted of the numbers. All of it is data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OURS: Final = "penstock"
STREAMS: Final = "Kafka Streams"
CONTENDERS: Final = (OURS, STREAMS)

PARTITIONS: Final = 2
"""Of every input topic: one for each core of a small machine. Streams has as many threads."""
KEY_COUNT: Final = 20_000

EVENTS: Final = "bench_events"
USERS: Final = "bench_users"
ORDERS: Final = "bench_orders"
PAYMENTS: Final = "bench_payments"

DECLARATIONS: Final = {
    EVENTS: "CREATE STREAM {name} (user_id STRING KEY, id BIGINT, type STRING, page STRING, amount DOUBLE, sent BIGINT)"
    " WITH (kafka_topic='{name}', value_format='JSON');",
    USERS: "CREATE TABLE {name} (user_id STRING PRIMARY KEY, name STRING, level STRING)"
    " WITH (kafka_topic='{name}', value_format='JSON');",
    ORDERS: "CREATE STREAM {name} (order_id STRING KEY, amount DOUBLE)"
    " WITH (kafka_topic='{name}', value_format='JSON');",
    PAYMENTS: "CREATE STREAM {name} (order_id STRING KEY, paid DOUBLE)"
    " WITH (kafka_topic='{name}', value_format='JSON');",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query in both languages: `statement` in ours, `topology` the name it has in the Java program.

    `inputs` are those whose rows count, `tables` those it looks into. `table`: the result is a table, whose last rows
    count.
    """

    topology: str
    statement: str
    inputs: tuple[str, ...] = (EVENTS,)
    tables: tuple[str, ...] = ()
    table: bool = False

    @property
    def kind(self) -> str:
        return "TABLE" if self.table else "STREAM"

    def text(self, result: str) -> str:
        return f"CREATE {self.kind} {result} WITH (value_format='JSON') AS {self.statement};"


FILTER: Final = Query(
    topology="filter",
    statement=f"SELECT user_id, id, page, amount, sent FROM {EVENTS} WHERE type = 'ERROR' EMIT CHANGES",
)
FORWARD: Final = Query(
    topology="forward", statement=f"SELECT user_id, id, page, amount, sent FROM {EVENTS} EMIT CHANGES"
)
WINDOWED_COUNT: Final = Query(
    topology="windowed count",
    statement=f"SELECT user_id, COUNT(*) AS n FROM {EVENTS} WINDOW TUMBLING (SIZE 1 MINUTE)"
    " WHERE type = 'ERROR' GROUP BY user_id EMIT CHANGES",
    table=True,
)
OTHER_KEY: Final = Query(
    topology="windowed count, other key",
    statement=f"SELECT page, COUNT(*) AS n FROM {EVENTS} WINDOW TUMBLING (SIZE 1 MINUTE)"
    " WHERE type = 'ERROR' GROUP BY page EMIT CHANGES",
    table=True,
)
TABLE_JOIN: Final = Query(
    topology="stream-table join",
    statement=f"SELECT e.user_id AS user_id, e.id, e.amount, u.level FROM {EVENTS} e"
    f" JOIN {USERS} u ON e.user_id = u.user_id EMIT CHANGES",
    tables=(USERS,),
)
STREAM_JOIN: Final = Query(
    topology="stream-stream join",
    statement=f"SELECT o.order_id AS order_id, o.amount, p.paid FROM {ORDERS} o JOIN {PAYMENTS} p"
    " WITHIN 10 SECONDS GRACE PERIOD 10 SECONDS ON o.order_id = p.order_id EMIT CHANGES",
    inputs=(ORDERS, PAYMENTS),
)
LATEST: Final = Query(
    topology="latest",
    statement=f"SELECT user_id, COUNT(*) AS n, MAX(sent) AS sent FROM {EVENTS} GROUP BY user_id EMIT CHANGES",
    table=True,
)
WINDOWED_LATEST: Final = Query(
    topology="windowed latest",
    statement=f"SELECT user_id, COUNT(*) AS n, MAX(sent) AS sent FROM {EVENTS} WINDOW TUMBLING (SIZE 1 MINUTE)"
    " GROUP BY user_id EMIT CHANGES",
    table=True,
)

THROUGHPUT: Final = {query.topology: query for query in (FILTER, WINDOWED_COUNT, OTHER_KEY, TABLE_JOIN, STREAM_JOIN)}
LATENCIES: Final = {
    "event to result": FORWARD,
    "event to result, aggregate": LATEST,
    "event to result, windowed aggregate": WINDOWED_LATEST,
}
IDLE_QUERIES: Final = (1, 8, 20)

START: Final = "start"
IDLE: Final = "idle queries"
SERVING: Final = "pull and push"
GROUPS: Final = (START, IDLE, *LATENCIES, *THROUGHPUT, SERVING)
"""What can be chosen, in the order in which it runs."""

WANTED: Final = {
    "server, spawn to healthy (s)": "<= 15 s",
    "event to result, p50 (ms)": "< 250 ms",
    "event to result, aggregate, p50 (ms)": "< 350 ms",
    "windowed count, CPU (s per million rows)": "<= 1x",
    "pull by key, p50 (ms)": "< 5 ms",
    "20 idle queries, CPU (cores)": "< 0.3",
}
"""By the name of the line; the number of rows is no part of it."""
