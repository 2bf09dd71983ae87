"""The ksql dialect: sqlglot's tokenizer with ksql's quotes, operators and comments.

No word is a keyword to the tokenizer: which words mean something depends on where they stand, and that is the
grammar's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

Kind = Literal["word", "name", "string", "number", "symbol", "end"]


class Ksql(Dialect):
    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        NESTED_COMMENTS = False
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            ">=": TokenType.GTE,
            "<=": TokenType.LTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "||": TokenType.DPIPE,
            ":=": TokenType.COLON_EQ,
            "->": TokenType.ARROW,
            "=>": TokenType.FARROW,
        }


@dataclass(frozen=True, slots=True)
class Token:
    """A word is written bare, a name between back-ticks or double quotes. `start` and `end` are offsets."""

    kind: Kind
    text: str
    start: int
    end: int


_KINDS: Final[dict[TokenType, Kind]] = {
    TokenType.VAR: "word",
    TokenType.IDENTIFIER: "name",
    TokenType.STRING: "string",
    TokenType.NUMBER: "number",
}


class UnreadableTextError(Exception):
    """A quote that is opened and never closed."""


def tokenize(text: str) -> list[Token]:
    """The tokens, with an end token last."""
    try:
        found = Ksql().tokenize(text)
    except TokenError as error:
        raise UnreadableTextError from error
    ours = [Token(_KINDS.get(each.token_type, "symbol"), each.text, each.start, each.end + 1) for each in found]
    return [*ours, Token("end", "", len(text), len(text))]
