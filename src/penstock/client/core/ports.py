"""What a client takes from the world: clock, tasks, network, chance. By default the real ones, on the running loop."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from penstock.base.system import SystemClock, SystemNetwork, SystemTasks
from penstock.network.settings import NetworkPorts

ClientPorts = NetworkPorts

_WORKER_THREADS: Final = 4


def system_ports() -> tuple[ClientPorts, SystemTasks]:
    """The ports, and the tasks among them for closing."""
    loop = asyncio.get_running_loop()
    tasks = SystemTasks(loop, threads=_WORKER_THREADS)
    ports = ClientPorts(network=SystemNetwork(loop), clock=SystemClock(), tasks=tasks, rng=random.Random())
    return ports, tasks
