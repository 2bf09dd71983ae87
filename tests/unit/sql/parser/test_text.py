"""Scripts, variables, errors: what is done with any text at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.errors import SqlSyntaxError
from penstock.sql.parser import RawStatement, parse, parse_expression, split_statements, substitute_variables


def raw(text: str, line: int, column: int, *, complete: bool = True, open_quote: bool = False) -> RawStatement:
    return RawStatement(text=text, line=line, column=column, complete=complete, open_quote=open_quote)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ;; -- nothing\n /* at all */ ;", []),
        ("A; B;", [raw("A", 1, 1), raw("B", 1, 4)]),
        ("-- one; not two\nA 'x;''y' -- ;\n;\n  B", [raw("A 'x;''y'", 2, 1), raw("B", 4, 3, complete=False)]),
        ('A `;` "a;b" /* ; */ C;', [raw('A `;` "a;b" /* ; */ C', 1, 1)]),
        ("A 'unfinished; ", [raw("A 'unfinished; ", 1, 1, complete=False, open_quote=True)]),
        ("A /* unfinished; ", [raw("A /* unfinished; ", 1, 1, complete=False, open_quote=True)]),
        ("a - b / c;", [raw("a - b / c", 1, 1)]),
    ],
)
def test_a_script_is_cut_at_its_semicolons(script: str, expected: list[RawStatement]) -> None:
    assert split_statements(script) == expected


def test_variables_are_put_in_everywhere_but_in_comments() -> None:
    text = "SELECT ${col} FROM `${Src}` WHERE a = '${v}' /* ${unknown} */ AND b = '$${v}'"
    assert substitute_variables(text, {"COL": "x", "src": "s", "v": "1"}) == (
        "SELECT x FROM `s` WHERE a = '1' /* ${unknown} */ AND b = '${v}'"
    )


def test_a_script_defines_its_variables_as_it_goes() -> None:
    script = "DEFINE t = 'topic'; PRINT '${t}'; UNDEFINE t;"
    assert [each.text for each in parse(script, variables={})] == ["DEFINE t = 'topic'", "PRINT 'topic'", "UNDEFINE t"]
    with pytest.raises(SqlSyntaxError, match=r"The variable \$\{t\} is not defined. Set it with: DEFINE t = 'value';"):
        parse(f"{script} PRINT '${{t}}';", variables={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELCT a FROM b;", "line 1:1: Unexpected 'SELCT'. Did you mean SELECT?"),
        ("SHOW STREEMS;", "line 1:6: Unexpected 'STREEMS'. Did you mean STREAMS?"),
        ("SHOW STREAMS;\n\n  SHOW 'x';", "line 3:8: Unexpected string 'x'. Expected one of: ALL, CONNECTOR,"),
        ("SELECT a\nFROM b WHRE c = 1", "line 2:13: Unexpected 'c'. Did you mean WHERE instead of WHRE?"),
        ("SELECT a FROM s GROUP BY b WHERE c", "line 1:28: WHERE is in the wrong place. The order is SELECT, FROM,"),
        ("SELECT a FROM s ORDER BY a", "line 1:17: ORDER is not part of the language."),
        (
            "SELECT a, FROM s",
            "line 1:11: Unexpected 'FROM'. Expected an expression; FROM is a reserved word: write `FROM`",
        ),
        ("SELECT 1a FROM s", "line 1:8: 1a is neither a number nor a name. Write `1a` if it is a name."),
        ("SELECT CASE WHEN a THEN b", "Unexpected end of the statement. Expected one of: AND, OR, WHEN, ELSE, END."),
        ("CREATE STREAM s (a INTT) WITH (x=1)", "line 1:20: There is no type INTT. Did you mean INT?"),
        ("CREATE STREAM s (a DECIMAL(50, 2))", "The precision of a DECIMAL is 1 to 38, not 50."),
        (
            "SELECT * FROM (SELECT 1)",
            "A query within a query is not part of the language. Make a stream or table of it",
        ),
        ("SELECT DISTINCT a FROM s", "SELECT DISTINCT is not part of the language."),
        ("SELECT * FROM s WINDOW HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS)", "advances by at most its size"),
        ("SELECT * FROM s WINDOW TUMBLING (SIZE 0 SECONDS)", "A window lasts longer than nothing."),
        ("INSERT INTO s (a, b) VALUES (1)", "2 columns are named and 1 values given."),
        ("CREATE STREAM s WITH (a=1, A=2)", "The property A is given twice."),
        ("PRINT 'x", "line 1:9: The text ends inside a quote or a comment. Close it."),
        ("PRINT 3topic", "Expected the name of a topic; write one that begins with a digit in back-ticks."),
    ],
)
def test_errors_say_where_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    assert message in str(caught.value)


WORDS = st.sampled_from([
    "SELECT", "FROM", "WHERE", "CREATE", "STREAM", "TABLE", "AS", "WITH", "(", ")", "[", "]", "<", ">", "=", ",", ";",
    "'", "`", '"', ".", "->", "*", "=>", ":=", "1", "1.5", "1e9", "a", "b", "'x'", "`y`", "INT", "ARRAY", "MAP",
    "STRUCT", "CASE", "WHEN", "THEN", "END", "CAST", "NOT", "NULL", "IN", "BETWEEN", "LIKE", "IS", "WINDOW", "TUMBLING",
    "SIZE", "SECONDS", "GROUP", "BY", "JOIN", "ON", "EMIT", "CHANGES", "LIMIT", "INSERT", "INTO", "VALUES", "DROP",
    "SHOW", "DESCRIBE", "EXPLAIN", "PRINT", "SET", "DEFINE", "${v}", "--", "/*", "*/", "-", "+", "||", "\n", "\r",
    "\x00",
])  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60), st.lists(WORDS, max_size=25).map(" ".join), st.lists(WORDS, max_size=25).map("".join)
    )
)
def test_any_text_is_understood_or_refused(text: str) -> None:
    for read in (split_statements, parse, lambda each: parse(each, variables={"v": "x'"}), parse_expression):
        error = _refusal(read, text)
        assert error is None or (error.message and error.line is not None and error.column is not None)


def _refusal(read: Callable[[str], object], text: str) -> SqlSyntaxError | None:
    try:
        read(text)
    except SqlSyntaxError as error:
        return error
    return None


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_statements_that_are_cut_are_found_where_they_are_said_to_be(text: str) -> None:
    lines = text.split("\n")
    for statement in split_statements(text):
        assert lines[statement.line - 1][statement.column - 1 :].startswith(statement.text.split("\n")[0])
