"""The levels of the broker's loggers, read and changed while it runs (KIP-412).

The loggers are those of this package; `root` stands for all of them, so that a broker inside somebody's test process
leaves that process's own loggers alone. Levels have Kafka's names. They hold until the broker stops.
"""

from __future__ import annotations

import logging
from typing import Final

from penstock.base.config.describe import UNKNOWN_TYPE, ConfigRow
from penstock.base.config.sources import Source
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import AlterOperation, ConfigStep

ROOT: Final = "root"
_OURS: Final = "penstock"
_LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def describe_loggers(names: list[str] | None) -> list[ConfigRow]:
    """Every logger with the level that counts for it, or those of them that are named."""
    listed = [name for name in logger_names() if names is None or name in names]
    return [
        ConfigRow(
            name=name,
            value=_level_name(_logger(name).getEffectiveLevel()),
            read_only=False,
            source=Source.DYNAMIC_BROKER_LOGGER,
            is_sensitive=False,
            synonyms=(),
            type=UNKNOWN_TYPE,
            documentation=None,
        )
        for name in listed
    ]


def logger_names() -> list[str]:
    known = logging.root.manager.loggerDict.items()
    return [
        ROOT,
        *sorted(name for name, each in known if name.startswith(f"{_OURS}.") and isinstance(each, logging.Logger)),
    ]


def alter_loggers(steps: list[ConfigStep], *, validate_only: bool) -> None:
    """All of them, or none: KafkaError says which cannot be done."""
    for step in steps:
        _check(step)
    if validate_only:
        return
    for name, operation, value in steps:
        level = logging.NOTSET if operation == AlterOperation.DELETE else _LEVELS[str(value)]
        _logger(name).setLevel(level)


def _check(step: ConfigStep) -> None:
    name, operation, value = step
    if operation not in (AlterOperation.SET, AlterOperation.DELETE):
        word = AlterOperation(operation).name if operation in list(AlterOperation) else f"Unknown ({operation})"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{word} operation is not allowed for the BROKER_LOGGER resource")
    if name not in logger_names():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.DELETE:
        if name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed")
    elif value not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(_LEVELS)}",
        )


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_OURS if name == ROOT else name)


def _level_name(level: int) -> str:
    """Kafka's name; of levels in between, the one below."""
    return max((each for each in _LEVELS.items() if each[1] <= max(level, 5)), key=lambda each: each[1])[0]
