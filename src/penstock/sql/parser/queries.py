"""SELECT: its clauses in the order of the language."""

from __future__ import annotations

from typing import Final, NoReturn, cast

from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.text import RESERVED_WORDS
from penstock.sql.parser.cursor import Cursor
from penstock.sql.parser.expressions import expression
from penstock.sql.parser.literals import duration_ms
from penstock.sql.plan.nodes import Emit, JoinKind, Window
from penstock.sql.schema import WindowType
from penstock.sql.statements import Join, Query, Relation, SelectItem, Within

CLAUSES: Final = ("FROM", "WINDOW", "WHERE", "GROUP BY", "PARTITION BY", "HAVING", "EMIT", "LIMIT")
_NO_ALIAS: Final = RESERVED_WORDS | {"PARTITION", "EMIT", "GRACE", "ORDER", "UNION"}
"""Words after an expression or a source that begin something else."""

_JOINS: Final[dict[str, JoinKind]] = {"INNER": "INNER", "LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}


def query(cursor: Cursor) -> Query:
    cursor.expect("SELECT")
    if cursor.token.kind == "word" and cursor.token.text.upper() == "DISTINCT":
        cursor.fail("SELECT DISTINCT is not part of the language.", hint="Use GROUP BY in a table.")
    items = cursor.listed(lambda: _item(cursor))
    cursor.expect("FROM")
    source = _relation(cursor)
    joins = _joins(cursor)
    window, grace_given = _window(cursor) if cursor.accept("WINDOW") else (None, False)
    found = Query(
        items=items,
        source=source,
        joins=joins,
        window=window,
        grace_given=grace_given,
        where=expression(cursor) if cursor.accept("WHERE") else None,
        group_by=_grouping(cursor) if cursor.accept("GROUP", "BY") else (),
        partition_by=_grouping(cursor) if cursor.accept("PARTITION", "BY") else (),
        having=expression(cursor) if cursor.accept("HAVING") else None,
        emit=_emit(cursor) if cursor.accept("EMIT") else None,
        limit=cursor.integer() if cursor.accept("LIMIT") else None,
    )
    if not cursor.at_end:
        _fail_after_query(cursor)
    return found


def _fail_after_query(cursor: Cursor) -> NoReturn:
    word = cursor.token.text.upper() if cursor.token.kind == "word" else ""
    clause = next((clause for clause in CLAUSES if clause.split()[0] == word), None)
    if word in ("ORDER", "UNION"):
        cursor.fail(f"{word} is not part of the language.")
    if clause and cursor.token.kind == "word":
        cursor.fail(f"{clause} is in the wrong place.", hint=f"The order is {', '.join(('SELECT', *CLAUSES))}.")
    cursor.fail()


def _item(cursor: Cursor) -> SelectItem:
    if cursor.accept_symbol("*"):
        return SelectItem(expression=None)
    if cursor.ahead(1).text == "." and cursor.ahead(2).text == "*" and cursor.ahead(2).kind == "symbol":
        source = cursor.name("the name of a source")
        cursor.expect_symbol(".")
        cursor.expect_symbol("*")
        return SelectItem(expression=None, star_source=source)
    found = expression(cursor)
    if cursor.accept_symbol("->"):
        cursor.expect_symbol("*")
        return SelectItem(expression=found, struct_all=True)
    return SelectItem(expression=found, alias=_alias(cursor))


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("a name for the column or source")
    token = cursor.token
    is_alias = token.kind == "name" or (token.kind == "word" and token.text.upper() not in _NO_ALIAS)
    return cursor.name() if is_alias else None


def _relation(cursor: Cursor) -> Relation:
    if cursor.is_symbol("("):
        cursor.fail(
            "A query within a query is not part of the language.",
            hint="Make a stream or table of it, and select from that.",
        )
    return Relation(name=cursor.name("the name of a stream or table"), alias=_alias(cursor))


def _joins(cursor: Cursor) -> tuple[Join, ...]:
    joins = []
    while cursor.is_word("JOIN", *_JOINS):
        joins.append(_join(cursor))
    return tuple(joins)


def _join(cursor: Cursor) -> Join:
    word = cursor.accept_one(*_JOINS)
    kind = _JOINS[word or "INNER"]
    if kind != "INNER":
        cursor.accept("OUTER")
    cursor.expect("JOIN")
    relation = _relation(cursor)
    within = _within(cursor) if cursor.accept("WITHIN") else None
    cursor.expect("ON")
    return Join(kind=kind, relation=relation, condition=expression(cursor), within=within)


def _within(cursor: Cursor) -> Within:
    if cursor.accept_symbol("("):
        before = duration_ms(cursor)
        cursor.expect_symbol(",")
        after = duration_ms(cursor)
        cursor.expect_symbol(")")
    else:
        before = after = duration_ms(cursor)
    grace = duration_ms(cursor) if cursor.accept("GRACE", "PERIOD") else None
    return Within(before_ms=before, after_ms=after, grace_ms=grace)


def _window(cursor: Cursor) -> tuple[Window, bool]:
    """The window, and whether it has a grace period of its own."""
    kind = cast("WindowType", cursor.expect_one("TUMBLING", "HOPPING", "SESSION"))
    cursor.expect_symbol("(")
    if kind != "SESSION":
        cursor.expect("SIZE")
    size = _positive_ms(cursor)
    advance = _advance_ms(cursor, size) if kind == "HOPPING" else None
    options = _window_options(cursor)
    cursor.expect_symbol(")")
    return Window(type=kind, size_ms=size, advance_ms=advance, **options), "grace_ms" in options


def _advance_ms(cursor: Cursor, size_ms: int) -> int:
    cursor.expect_symbol(",")
    cursor.expect("ADVANCE", "BY")
    token = cursor.token
    advance = _positive_ms(cursor)
    return advance if advance <= size_ms else cursor.fail("A hopping window advances by at most its size.", at=token)


def _positive_ms(cursor: Cursor) -> int:
    token = cursor.token
    return duration_ms(cursor) or cursor.fail("A window lasts longer than nothing.", at=token)


def _window_options(cursor: Cursor) -> dict[str, int]:
    options: dict[str, int] = {}
    while cursor.accept_symbol(","):
        word = cursor.expect_one("RETENTION", "GRACE")
        if word == "GRACE":
            cursor.expect("PERIOD")
        options[f"{word.lower()}_ms"] = duration_ms(cursor)
    return options


def _grouping(cursor: Cursor) -> tuple[Expression, ...]:
    """`a, b` or `(a, b)`; `(a + b) * 2` is an expression that begins with a bracket."""
    mark = cursor.mark()
    if cursor.accept_symbol("("):
        items = cursor.listed(lambda: expression(cursor))
        if len(items) > 1:
            cursor.expect_symbol(")")
            return items
        cursor.go_back(mark)
    return cursor.listed(lambda: expression(cursor))


def _emit(cursor: Cursor) -> Emit:
    return "FINAL" if cursor.expect_one("CHANGES", "FINAL") == "FINAL" else "CHANGES"
