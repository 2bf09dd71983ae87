"""What the coordinators of a broker in this process say of themselves."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from penstock.base import metric_names as names
from penstock.base.config.loading import load_broker_config
from penstock.base.system import SystemWorld
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.server.broker import Broker
from tests.integration.driving import create_topic
from tests.integration.test_coordinators import TRANSACTION, commit, find
from tests.support.ports import free_port
from tests.support.raw_client import connect


def _drive(port: int) -> None:
    """Two groups with one offset each, one group with a member, one transactional id."""
    with connect("127.0.0.1", port) as client:
        create_topic(client, "watched")
        find(client, "a")
        assert [commit(client, group, "watched", 1) for group in ("a", "b")] == [0, 0]
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        join = JoinGroupRequest(
            group_id="c",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        assert client.call(ApiKey.JOIN_GROUP, 3, join).error_code == 0
        find(client, "tx", kind=TRANSACTION)
        init = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=10_000)
        assert client.call(ApiKey.INIT_PRODUCER_ID, 4, init).error_code == 0


async def test_groups_offsets_and_transactions_are_counted_by_state(tmp_path: Path) -> None:
    port = free_port()
    flags = {"log.dirs": str(tmp_path), "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    config = load_broker_config(file=None, environ={}, flags=flags, profile="development")
    world = SystemWorld(asyncio.get_running_loop(), threads=2)
    broker = Broker(config, world, random.Random(1))
    try:
        await broker.start()
        await asyncio.to_thread(_drive, port)
        text = broker.metrics.render_prometheus()
    finally:
        await broker.stop()
        await world.close()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    wanted = {
        names.GROUPS: 3,
        names.GROUPS_EMPTY: 2,
        names.GROUPS_COMPLETING_REBALANCE: 1,
        names.GROUPS_STABLE: 0,
        names.GROUP_OFFSETS: 2,
        f'{names.TRANSACTIONS}{{state="Empty"}}': 1,
        f'{names.TRANSACTIONS}{{state="Ongoing"}}': 0,
        names.MARKERS_PENDING: 0,
    }
    assert {name: float(values[name]) for name in wanted} == wanted
    for partitions in (names.GROUP_PARTITIONS, names.TRANSACTION_PARTITIONS):
        assert float(values[f'{partitions}{{state="active"}}']) > 0
        assert float(values[f'{partitions}{{state="failed"}}']) == 0
