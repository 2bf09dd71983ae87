"""Which topics metadata is wanted of, and which of them are to be asked for next. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple


class Question(NamedTuple):
    topics: frozenset[str]
    """Topics to ask for."""
    is_all: bool
    """Every topic of the cluster instead."""
    is_partial: bool
    """Only topics that are new here; what is known of the others stays."""


class Wanted:
    def __init__(self, idle_s: float) -> None:
        """`idle_s`: a topic that nobody wants for so long is dropped; 0 keeps all."""
        self.all = False
        self._idle_s = idle_s
        self._topics: dict[str, float] = {}
        self._new: set[str] = set()

    @property
    def topics(self) -> Collection[str]:
        return self._topics.keys()

    @property
    def new(self) -> Collection[str]:
        """Topics that are to be asked for at once."""
        return self._new

    @property
    def is_anything(self) -> bool:
        return self.all or bool(self._topics)

    def add(self, topics: Iterable[str], now: float) -> bool:
        """Whether one of them is new. For topics that are not new, any thread may call this."""
        before = len(self._new)
        for topic in topics:
            if topic not in self._topics:
                self._new.add(topic)
            self._topics[topic] = now
        return len(self._new) > before

    def ask_again(self, topic: str) -> None:
        self._new.add(topic)

    def remove(self, topics: Iterable[str]) -> None:
        for topic in list(topics):
            self._topics.pop(topic, None)
            self._new.discard(topic)

    def next_question(self, now: float, *, full: bool) -> Question:
        """What to ask for now; `full` asks for everything that is wanted, not only for what is new."""
        if self._idle_s:
            self.remove(topic for topic, at in list(self._topics.items()) if at < now - self._idle_s)
        is_partial = bool(self._new) and not full and not self.all
        topics = frozenset(self._new if is_partial else self._topics)
        self._new.clear()
        return Question(topics, self.all, is_partial)
