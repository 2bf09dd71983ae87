"""How the administration client reports failures of one thing and of many.

A call that asked for one thing raises that thing's error. A call that asked for several raises `AdminErrors` when some
of them failed: it holds what succeeded as well, because that has happened and cannot be asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.error_texts import TEXTS
from penstock.client.errors import ClientError, error_for

K = TypeVar("K")
V = TypeVar("V")

_SHOWN_MAX: Final = 5


class InvalidInput(ClientError, ValueError):  # noqa: N818 - named for what happened
    """What was asked for makes no sense: nothing was sent."""

    default_code = ErrorCode.INVALID_REQUEST

    @property
    def retriable(self) -> bool:
        """Never."""
        return False


class AdminErrors(ClientError):  # noqa: N818 - several, as in ConfigErrors
    """Some of the things that one call asked for failed. `failures` and `successes` are by what was asked for."""

    def __init__(self, failures: Mapping[Any, KafkaError], successes: Mapping[Any, Any]) -> None:
        self.failures = dict(failures)
        self.successes = dict(successes)
        first = next(iter(self.failures.values()))
        super().__init__(_summary(self.failures, len(self.successes)), code=first.code)

    @property
    def retriable(self) -> bool:
        """Whether all that failed may succeed later."""
        return all(each.code.retriable for each in self.failures.values())


def _summary(failures: Mapping[Any, KafkaError], succeeded: int) -> str:
    shown = [_with_remedy(each) for each in list(failures.values())[:_SHOWN_MAX]]
    more = len(failures) - len(shown)
    tail = f"; and {more} more" if more > 0 else ""
    rest = f". The other {succeeded} are done: ask again for those in `failures` only" if succeeded else ""
    return f"{len(failures)} of {len(failures) + succeeded} failed: {'; '.join(shown)}{tail}{rest}"


def _with_remedy(error: KafkaError) -> str:
    """A broker's own text says what happened; what to do about it is added."""
    _, _, remedy = TEXTS.get(error.code, "").partition(": ")
    return error.message if not remedy or remedy in error.message else f"{error.message.rstrip('.')} ({remedy})"


def failure(what: str, code: int, message: str | None = None) -> ClientError:
    """The error of one thing that was asked for, which it names."""
    return error_for(code, f"{what}: {message or error_for(code).message}")


@dataclass(slots=True)
class Outcome(Generic[K, V]):
    """What became of each thing that was asked for, while the answers come in."""

    done: dict[K, V] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)

    def add(self, key: K, value: V, code: int, what: str, message: str | None = None) -> None:
        """One line of an answer: the value if there is no error."""
        if code:
            self.failed[key] = failure(what, code, message)
        else:
            self.done[key] = value

    def join(self, other: Outcome[K, V]) -> None:
        self.done.update(other.done)
        self.failed.update(other.failed)

    def missing(self, asked: Mapping[K, str]) -> None:
        """What was asked for and not answered has failed too; `asked` says how to name it."""
        for key, what in asked.items():
            if key not in self.done and key not in self.failed:
                self.failed[key] = ClientError(f"{what}: the broker's answer does not mention it")

    def result(self) -> dict[K, V]:
        """What was asked for, or the failure: the error itself if one thing was asked for, else `AdminErrors`."""
        if not self.failed:
            return self.done
        if len(self.failed) == 1 and not self.done:
            raise next(iter(self.failed.values()))
        raise AdminErrors(self.failed, self.done)
