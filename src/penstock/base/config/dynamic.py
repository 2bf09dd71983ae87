"""Broker settings that change while the broker runs: which may, by whom, and to what (KIP-226).

Every broker has a layer of its own over a layer for all of them (`BrokerConfig.with_dynamic`). A key that only counts
at the start is refused, and so is a value the broker could not run with; a key that nobody knows is kept, as it may be
meant for a plug-in. All refusals are Kafka's INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from penstock.base.config import broker_keys as keys
from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ConfigErrors, Problem, UpdateMode
from penstock.base.config.resolving import known_key
from penstock.base.config.rules import BadValueError
from penstock.base.errors import ErrorCode, KafkaError

_LISTENER_PREFIX: Final = "listener.name."
_ALSO_FOR_ALL_BROKERS: Final = (
    keys.MAX_CONNECTIONS.name,
    keys.MAX_CONNECTION_CREATION_RATE.name,
    keys.NUM_NETWORK_THREADS.name,
)
"""Keys that a listener may have of its own and that may still be set for all brokers."""

_ONLY_PER_LISTENER: Final = frozenset(
    {
        keys.SSL_KEYSTORE_TYPE.name,
        keys.SSL_KEYSTORE_LOCATION.name,
        keys.SSL_KEYSTORE_PASSWORD.name,
        keys.SSL_KEY_PASSWORD.name,
        keys.SSL_TRUSTSTORE_TYPE.name,
        keys.SSL_TRUSTSTORE_LOCATION.name,
        keys.SSL_TRUSTSTORE_PASSWORD.name,
        keys.SSL_KEYSTORE_CERTIFICATE_CHAIN.name,
        keys.SSL_KEYSTORE_KEY.name,
        keys.SSL_TRUSTSTORE_CERTIFICATES.name,
    }
)

_POOL_SIZES: Final = (
    keys.NUM_IO_THREADS,
    keys.NUM_NETWORK_THREADS,
    keys.NUM_REPLICA_FETCHERS,
    keys.NUM_RECOVERY_THREADS_PER_DATA_DIR,
    keys.BACKGROUND_THREADS,
    keys.LOG_CLEANER_THREADS,
)
"""Numbers of threads: one step may at most double or halve them."""


def check_dynamic_settings(
    current: BrokerConfig, *, broker: Mapping[str, str], default: Mapping[str, str], per_broker: bool
) -> None:
    """KafkaError unless `current` may go over to these layers, of which the one that `per_broker` names is new."""
    settings = broker if per_broker else default
    for message, names in _misplaced(settings, per_broker):
        if names:
            raise _refused(f"{message}: Set({', '.join(sorted(names))})")
    _check_values(settings)
    try:
        wanted = current.with_dynamic(broker=broker, default=default)
    except ConfigErrors as errors:
        raise _refused("; ".join(map(str, errors.problems))) from errors
    _check_pool_sizes(current, wanted)
    if wanted.listeners != current.listeners:
        raise _refused("Listeners cannot be changed while the broker runs; change its file and start it again.")


def with_usable_dynamic(
    static: BrokerConfig, *, broker: Mapping[str, str], default: Mapping[str, str]
) -> tuple[BrokerConfig, tuple[Problem, ...]]:
    """`static` under these layers, and what had to be left out of them because it does not go with the file any more.

    The settings that the problems name go first; when that does not help, both layers do.
    """
    try:
        return static.with_dynamic(broker=broker, default=default), ()
    except ConfigErrors as errors:
        problems = errors.problems
    bad = {problem.key for problem in problems}
    try:
        return static.with_dynamic(broker=_without(broker, bad), default=_without(default, bad)), problems
    except ConfigErrors:
        return static, problems


def _without(settings: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: text for name, text in settings.items() if name not in names}


def _misplaced(settings: Mapping[str, str], per_broker: bool) -> Iterator[tuple[str, list[str]]]:
    known = {name: keys.KEYS[name] for name in settings if name in keys.KEYS}
    fixed = [name for name, key in known.items() if key.update is UpdateMode.READ_ONLY]
    yield "Cannot update these configs dynamically", fixed
    secrets = [name for name in settings if name in _ONLY_PER_LISTENER]
    yield "These security configs can be dynamically updated only per-listener using the listener prefix", secrets
    if not per_broker:
        own = [name for name, key in known.items() if key.update is UpdateMode.PER_BROKER]
        own += [name for name in settings if name.startswith(_LISTENER_PREFIX) and not _is_for_all(name)]
        yield "Cannot update these configs at default cluster level, broker id must be specified", own


def _is_for_all(name: str) -> bool:
    return name.endswith(tuple(f".{each}" for each in _ALSO_FOR_ALL_BROKERS))


def _check_values(settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        key = known_key(name)
        if key is None:
            continue
        try:
            key.parse(text)
        except BadValueError as error:
            shown = "[hidden]" if key.sensitive else text
            raise _refused(f"Invalid value {shown} for configuration {name}: {error.reason}") from error


def _check_pool_sizes(current: BrokerConfig, wanted: BrokerConfig) -> None:
    for key in _POOL_SIZES:
        old, new = current[key], wanted[key]
        problem = f"Dynamic thread count update validation failed for {key.name}={new}"
        if new < old // 2:
            raise _refused(f"{problem}, value should be at least half the current value {old}")
        if new > old * 2:
            raise _refused(f"{problem}, value should not be greater than double the current value {old}")


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
