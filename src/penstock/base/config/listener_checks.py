"""The listener keys taken together: what is opened, what is advertised, and what is wrong with either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from penstock.base.config import broker_keys as keys
from penstock.base.config.declaration import Key, Problem
from penstock.base.config.effective import PlainValues
from penstock.base.config.listeners import (
    Listener,
    ListenerError,
    check_advertised,
    check_distinct,
    check_supported,
    parse_listener,
    parse_protocol_map,
)
from penstock.base.config.resolving import problem_with
from penstock.base.config.sources import Setting


@dataclass(slots=True)
class ListenerReport:
    listeners: tuple[Listener, ...] = ()
    advertised_listeners: tuple[Listener, ...] = ()
    """One for each listener, in the same order."""
    left_closed: tuple[str, ...] = ()
    """Listeners that belong to a KRaft controller."""
    problems: list[Problem] = field(default_factory=list)


def check_listeners(values: PlainValues, settings: Mapping[str, Setting], hostname: str) -> ListenerReport:
    report = ListenerReport()
    protocols = _protocols(values, settings, report)
    listeners = _parse(keys.LISTENERS, values[keys.LISTENERS], protocols, settings, report)
    controller_names = {name.upper() for name in values[keys.CONTROLLER_LISTENER_NAMES]}
    report.left_closed = tuple(entry.name for entry in listeners if entry.name in controller_names)
    report.listeners = tuple(entry for entry in listeners if entry.name not in controller_names)
    _guard(report, keys.LISTENERS, settings, partial(check_distinct, listeners, ports=True))
    for listener in report.listeners:
        _guard(report, keys.LISTENERS, settings, partial(check_supported, listener))
    if not report.listeners and not report.problems:
        _add(report, keys.LISTENERS, settings, "there is no listener for clients")
    report.advertised_listeners = _advertised(values, settings, protocols, hostname, report)
    _check_inter_broker(values, settings, report)
    return report


def _protocols(values: PlainValues, settings: Mapping[str, Setting], report: ListenerReport) -> dict[str, str]:
    try:
        protocols = parse_protocol_map(values[keys.LISTENER_SECURITY_PROTOCOL_MAP])
    except ListenerError as error:
        _add(report, keys.LISTENER_SECURITY_PROTOCOL_MAP, settings, str(error))
        protocols = parse_protocol_map(keys.LISTENER_SECURITY_PROTOCOL_MAP.default)
    if keys.LISTENER_SECURITY_PROTOCOL_MAP.name not in settings:
        # Kafka lets a controller's listener go unmapped as long as nothing is mapped.
        for name in values[keys.CONTROLLER_LISTENER_NAMES]:
            protocols.setdefault(name.upper(), "PLAINTEXT")
    return protocols


def _advertised(
    values: PlainValues,
    settings: Mapping[str, Setting],
    protocols: Mapping[str, str],
    hostname: str,
    report: ListenerReport,
) -> tuple[Listener, ...]:
    texts = values[keys.ADVERTISED_LISTENERS]
    by_name = {entry.name: entry for entry in report.listeners}
    if texts is not None:
        given = _parse(keys.ADVERTISED_LISTENERS, texts, protocols, settings, report)
        _guard(report, keys.ADVERTISED_LISTENERS, settings, partial(check_distinct, given, ports=False))
        for entry in given:
            if entry.name not in by_name and entry.name not in report.left_closed:
                names = ", ".join(by_name) or "none"
                _add(report, keys.ADVERTISED_LISTENERS, settings, f"{entry.name} is not one of the listeners ({names})")
        by_name.update({entry.name: entry for entry in given if entry.name in by_name})
    advertised = tuple(entry if entry.host else replace(entry, host=hostname) for entry in by_name.values())
    at_fault = keys.LISTENERS if texts is None else keys.ADVERTISED_LISTENERS
    for listener in advertised:
        _guard(report, at_fault, settings, partial(check_advertised, listener))
    return advertised


def _check_inter_broker(values: PlainValues, settings: Mapping[str, Setting], report: ListenerReport) -> None:
    name = values[keys.INTER_BROKER_LISTENER_NAME]
    if name is None:
        return
    if keys.SECURITY_INTER_BROKER_PROTOCOL.name in settings:
        reason = f"set this or {keys.SECURITY_INTER_BROKER_PROTOCOL.name}, not both"
        _add(report, keys.INTER_BROKER_LISTENER_NAME, settings, reason)
    if report.listeners and name.upper() not in {entry.name for entry in report.listeners}:
        _add(report, keys.INTER_BROKER_LISTENER_NAME, settings, "is not one of the listeners")


def _parse(
    key: Key[Any],
    texts: tuple[str, ...],
    protocols: Mapping[str, str],
    settings: Mapping[str, Setting],
    report: ListenerReport,
) -> list[Listener]:
    listeners = []
    for text in texts:
        try:
            listeners.append(parse_listener(text, protocols))
        except ListenerError as error:
            _add(report, key, settings, str(error))
    return listeners


def _guard(report: ListenerReport, key: Key[Any], settings: Mapping[str, Setting], check: Callable[[], None]) -> None:
    try:
        check()
    except ListenerError as error:
        _add(report, key, settings, str(error))


def _add(report: ListenerReport, key: Key[Any], settings: Mapping[str, Setting], reason: str) -> None:
    report.problems.append(problem_with(key, settings, reason))
