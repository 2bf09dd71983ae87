"""A place among the tokens of one statement.

Rules ask the cursor what comes next. Every question that is answered with no is remembered until the cursor moves, so
that an error can say what would have been right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from penstock.base.config.text import closest
from penstock.sql.errors import SqlSyntaxError
from penstock.sql.expressions.places import Place, Places
from penstock.sql.expressions.text import RESERVED_WORDS
from penstock.sql.parser.dialect import Token, UnreadableTextError, tokenize
from penstock.sql.types import SqlType

T = TypeVar("T")

EXPECTED_SHOWN_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where in the whole text the statement begins."""

    line: int = 1
    column: int = 1

    def place(self, text: str, offset: int) -> tuple[int, int]:
        before = text[:offset]
        lines = before.count("\n")
        column = offset - (before.rfind("\n") + 1) + 1
        return self.line + lines, column if lines else self.column + column - 1


class Cursor:
    """`types` are the custom types that may be named; `scopes` the parameters of the lambdas around this place."""

    def __init__(self, text: str, *, origin: Origin, types: Mapping[str, SqlType]):
        self._text = text
        self._origin = origin
        self._index = 0
        self._expected: list[str] = []
        self.types = types
        self.scopes: list[frozenset[str]] = []
        self.nesting = 0
        self.places = Places()
        try:
            self._tokens = tokenize(text)
        except UnreadableTextError:
            self._refuse_unreadable()

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end"

    def ahead(self, count: int) -> Token:
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._index += 1
        self._expected.clear()
        return token

    def place_of(self, token: Token) -> Place:
        return self._origin.place(self._text, token.start)

    def mark(self) -> int:
        return self._index

    def go_back(self, mark: int) -> None:
        self._index = mark
        self._expected.clear()

    def is_word(self, *words: str) -> bool:
        """Whether one of these words is next."""
        if self.token.kind == "word" and self.token.text.upper() in words:
            return True
        self._expected.extend(words)
        return False

    def accept(self, *words: str) -> bool:
        """Takes all of these words, one after another, or none."""
        for count, word in enumerate(words):
            token = self.ahead(count)
            if token.kind != "word" or token.text.upper() != word:
                if count == 0:
                    self._expected.append(word)
                return False
        for _ in words:
            self.advance()
        return True

    def accept_one(self, *words: str) -> str | None:
        return self.advance().text.upper() if self.is_word(*words) else None

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.fail()

    def expect_one(self, *words: str) -> str:
        return self.accept_one(*words) or self.fail()

    def is_symbol(self, symbol: str) -> bool:
        if self.token.kind == "symbol" and self.token.text == symbol:
            return True
        self._expected.append(f"'{symbol}'")
        return False

    def accept_symbol(self, symbol: str) -> bool:
        if self.is_symbol(symbol):
            self.advance()
            return True
        return False

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.fail()

    def accept_string(self) -> str | None:
        if self.token.kind == "string":
            return self.advance().text
        self._expected.append("a string in single quotes")
        return None

    def string(self) -> str:
        text = self.accept_string()
        return self.fail() if text is None else text

    def accept_integer(self) -> int | None:
        """A whole number without a sign."""
        if self.token.kind == "number" and self.token.text.isascii() and self.token.text.isdigit():
            if len(self.token.text) > 18:
                self.fail(f"The number {self.token.text[:30]} is too large.")
            return int(self.advance().text)
        self._expected.append("a whole number")
        return None

    def integer(self) -> int:
        number = self.accept_integer()
        return self.fail() if number is None else number

    def is_name(self, what: str = "a name") -> bool:
        token = self.token
        if token.kind == "name" and token.text:
            return True
        if token.kind == "word" and token.text.upper() not in RESERVED_WORDS and token.text.isidentifier():
            return True
        self._expected.append(what)
        return False

    def name(self, what: str = "a name", *, keep_case: bool = False) -> str:
        """A bare name folds to upper case, a quoted one stays as it is."""
        if not self.is_name(what):
            self._fail_at_name(what)
        token = self.advance()
        return token.text if keep_case or token.kind == "name" else token.text.upper()

    def name_or_string(self, what: str) -> str:
        """Of something outside the catalog, such as a topic: case is kept in every form."""
        text = self.accept_string()
        return self.name(what, keep_case=True) if text is None else text

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between."""
        items = [item()]
        while self.accept_symbol(","):
            items.append(item())
        return tuple(items)

    def bracketed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """`(item, item)`, at least one."""
        self.expect_symbol("(")
        items = self.listed(item)
        self.expect_symbol(")")
        return items

    def fail(self, message: str | None = None, *, hint: str | None = None, at: Token | None = None) -> NoReturn:
        """Refuses the text here; without a message, because of what is next."""
        token = at or self.token
        if message is None:
            message, hint = f"Unexpected {_shown(token)}.", hint or self._expectation()
        line, column = self.place_of(token)
        raise SqlSyntaxError(message, line=line, column=column, hint=hint)

    def _expectation(self) -> str | None:
        expected = list(dict.fromkeys(self._expected))
        words = [each for each in expected if each.isupper()]
        if meant := self._meant(self.token, words):
            return f"Did you mean {meant}?"
        # A misspelt word may have been taken for a name, and only what follows it is out of place.
        before = self._tokens[max(self._index - 1, 0)]
        if meant := self._meant(before, words):
            return f"Did you mean {meant} instead of {before.text}?"
        if len(expected) > 1:
            dots = ", ..." if len(expected) > EXPECTED_SHOWN_MAX else ""
            return f"Expected one of: {', '.join(expected[:EXPECTED_SHOWN_MAX])}{dots}."
        return f"Expected {expected[0]}." if expected else None

    @staticmethod
    def _meant(token: Token, words: list[str]) -> str | None:
        return closest(token.text.upper(), words) if token.kind == "word" else None

    def _fail_at_name(self, what: str) -> NoReturn:
        token = self.token
        if token.kind == "word" and token.text.upper() in RESERVED_WORDS:
            hint = (
                f"Expected {what}; {token.text.upper()} is a reserved word: write `{token.text}` to use it as a name."
            )
            self.fail(f"Unexpected {_shown(token)}.", hint=hint)
        if token.kind == "number":
            self.fail(
                f"Unexpected {_shown(token)}.",
                hint=f"Expected {what}; write one that begins with a digit in back-ticks.",
            )
        self.fail()

    def _refuse_unreadable(self) -> NoReturn:
        line, column = self._origin.place(self._text, len(self._text))
        raise SqlSyntaxError(
            "A quote is opened and never closed.",
            line=line,
            column=column,
            hint="Write '' for a quote inside a string.",
        )


def _shown(token: Token) -> str:
    if token.kind == "end":
        return "end of the statement"
    return f"string '{token.text}'" if token.kind == "string" else f"'{token.text}'"
