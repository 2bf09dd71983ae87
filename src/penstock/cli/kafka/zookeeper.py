"""The brokers that are registered in a ZooKeeper, for command lines from before Kafka 3.

Kafka 2.8 wrote `/brokers/ids/<id>` with the broker's listeners as JSON. Only that is read: everything else is asked of
the brokers themselves.
"""

from __future__ import annotations

import json
import logging
import socket
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from penstock.cli.failures import Failed

IDS_PATH: Final = "/brokers/ids"
CONNECT_TIMEOUT_S: Final = 3.0
SESSION_TIMEOUT_S: Final = 10.0
INSTEAD: Final = "use --bootstrap-server with a broker's address instead, such as --bootstrap-server localhost:9092"


def find_brokers(hosts: str, security_protocol: str = "PLAINTEXT") -> str:
    """The brokers registered there, as `bootstrap.servers`; `hosts` may end in a path, as in `zk1:2181,zk2:2181/kafka`.

    The listeners that speak the security protocol are taken, or all if none does.
    """
    if not any(_answers(*each) for each in _addresses(hosts)):
        raise Failed(f"no ZooKeeper answers at {hosts}; Kafka 4 and Penstock need none: {INSTEAD}")
    registrations = _read(hosts)
    if not registrations:
        raise Failed(f"no broker is registered in the ZooKeeper at {hosts} (in {IDS_PATH}): {INSTEAD}")
    found = [address for each in registrations for address in listeners(each, security_protocol)]
    if not found:
        raise Failed(f"the brokers in the ZooKeeper at {hosts} are registered without an address: {INSTEAD}")
    return ",".join(found)


def listeners(registration: Mapping[str, Any], security_protocol: str) -> list[str]:
    """The addresses in one broker's registration."""
    protocols = registration.get("listener_security_protocol_map") or {}
    endpoints = {}
    for endpoint in registration.get("endpoints") or ():
        name, _, address = str(endpoint).partition("://")
        endpoints[address] = protocols.get(name, name)
    fitting = [address for address, protocol in endpoints.items() if protocol == security_protocol.upper()]
    if fitting or endpoints:
        return fitting or list(endpoints)
    # Brokers before 0.9 registered host and port alone.
    host, port = registration.get("host"), registration.get("port", -1)
    return [f"{host}:{port}"] if host and port > 0 else []


def _addresses(hosts: str) -> Iterator[tuple[str, int]]:
    for each in hosts.partition("/")[0].split(","):
        host, colon, port = each.strip().rpartition(":")
        if colon and not port.isdecimal():
            raise Failed(f"--zookeeper takes host:port, and {each.strip()!r} is not of that form; {INSTEAD}")
        yield (host.strip("[]") if colon else each.strip(), int(port) if colon else 2181)


def _answers(host: str, port: int) -> bool:
    """Whether somebody listens there: the ZooKeeper client itself would try for a long time."""
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def _read(hosts: str) -> list[dict[str, Any]]:
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException, NoNodeError
        from kazoo.handlers.threading import KazooTimeoutError
    except ModuleNotFoundError:
        raise Failed(
            f"--zookeeper needs the ZooKeeper client (pip install 'penstock[zookeeper]'), or {INSTEAD}"
        ) from None
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    client = KazooClient(hosts=hosts, timeout=SESSION_TIMEOUT_S, read_only=True)
    try:
        with warnings.catch_warnings():
            # Of a path that does not exist; that no broker is registered there is told below.
            warnings.simplefilter("ignore")
            client.start(timeout=SESSION_TIMEOUT_S)
        children = sorted(client.get_children(IDS_PATH))
        return [json.loads(client.get(f"{IDS_PATH}/{each}")[0]) for each in children]
    except NoNodeError:
        return []
    except (KazooTimeoutError, KazooException) as error:
        reason = str(error) or type(error).__name__
        raise Failed(f"what listens at {hosts} does not answer as a ZooKeeper ({reason}): {INSTEAD}") from None
    except ValueError as error:
        raise Failed(f"a broker's registration in the ZooKeeper at {hosts} is no JSON ({error}): {INSTEAD}") from None
    finally:
        client.stop()
        client.close()
