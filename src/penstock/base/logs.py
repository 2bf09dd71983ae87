"""Logging: lines for people or JSON lines for machines, on standard error, with fields.

Code logs as usual and puts what belongs to the message into fields: `log.info("topic created", extra={"topic": name})`.
The text form is `2026-01-31 12:00:00,123 INFO penstock.server topic created topic=orders`, the JSON form one object
per line with `time`, `level`, `logger`, `message` and the fields. A traceback follows its line, or is the field
`exception`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

_OWN_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logging(format: str = "text", level: str = "INFO", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send every logger's lines to `stream` (standard error) in one form; a later call replaces the earlier one."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What the caller gave as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}


class TextFormatter(logging.Formatter):
    """Local time, level, logger, message, then `k=v`. A line break inside a message or value is shown escaped."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created)
        parts = [
            f"{moment:%Y-%m-%d %H:%M:%S},{int(record.msecs):03d}",
            record.levelname,
            record.name,
            _one_line(record.getMessage()),
        ]
        parts += [f"{name}={_text_value(value)}" for name, value in fields_of(record).items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in fields_of(record).items():
            # A field must not hide the line's own members.
            line[f"field.{name}" if name in line else name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _one_line(text: str) -> str:
    # Names chosen by clients end up in messages; they must not be able to forge further lines.
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _text_value(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not any(sign in text for sign in ' "='):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
