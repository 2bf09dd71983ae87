"""A consumer's keys whose values are objects: looked at when the consumer is made, not at its first poll."""

from __future__ import annotations

from penstock.client.config import ClientConfig, consumer_keys
from penstock.client.config.resolving import Resolving
from penstock.client.errors import InvalidState


def check_objects(config: ClientConfig, resolving: Resolving) -> ClientConfig:
    """The configuration with assignors as objects; problems go to `resolving`."""
    resolving.value(consumer_keys.OFFSET_STORE, lambda: check_store(config[consumer_keys.OFFSET_STORE]), None)
    if not config.is_given(consumer_keys.PARTITION_ASSIGNMENT_STRATEGY):
        return config
    assignors: tuple[object, ...] = resolving.value(
        consumer_keys.PARTITION_ASSIGNMENT_STRATEGY, lambda: _assignors(config), ()
    )
    return config.replaced({consumer_keys.PARTITION_ASSIGNMENT_STRATEGY: assignors})


def check_store(store: object) -> None:
    """InvalidState for something that cannot keep offsets."""
    missing = [name for name in ("load", "save") if not callable(getattr(store, name, None))]
    if store is None or (not missing and not isinstance(store, type)):
        return
    why = f"has no {' and no '.join(missing)}" if missing else "is a class, not an object of it"
    raise InvalidState(
        f"{store!r} {why}: give an object with load(group, partitions) and save(group, offsets), such as "
        "penstock.DbApiOffsetStore(...)"
    )


def _assignors(config: ClientConfig) -> tuple[object, ...]:
    # Imported here: whoever reads alone need not load what groups need.
    from penstock.client.consumer.assignors.catalogue import common_protocol, resolve_assignors

    strategy: tuple[object, ...] = config[consumer_keys.PARTITION_ASSIGNMENT_STRATEGY]
    assignors = resolve_assignors(strategy)
    common_protocol(assignors)
    return tuple(assignors)
