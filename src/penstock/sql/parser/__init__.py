"""Text to statements.

The ksql dialect takes sqlglot's tokenizer (`dialect`, the only importer of sqlglot) and a grammar of its own over the
tokens (`cursor`): `expressions`, `types`, `queries`, `definitions`, `administration`, one function per rule. A script
is first cut into statements (`splitting`), then each is parsed by its first words (`statements`).

Whatever the text, the only thing raised is `SqlSyntaxError`, with line, column and what was expected there.
"""

from penstock.sql.parser.splitting import RawStatement, split_statements, substitute_variables
from penstock.sql.parser.statements import parse, parse_expression, parse_name, parse_type

__all__ = [
    "RawStatement",
    "parse",
    "parse_expression",
    "parse_name",
    "parse_type",
    "split_statements",
    "substitute_variables",
]
