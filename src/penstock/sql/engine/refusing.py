"""Statements that belong to the language, but not here: each is refused by its name."""

from __future__ import annotations

from penstock.sql.errors import NotSupportedError, SqlError, WrongEndpointError
from penstock.sql.statements import (
    AlterSystem,
    AssertSchema,
    AssertSource,
    AssertValues,
    CreateConnector,
    DropConnector,
    PrintTopic,
    RunScript,
    SelectStatement,
    Spool,
    Statement,
)


def check_endpoint(statement: Statement) -> None:
    if isinstance(statement, SelectStatement | PrintTopic):
        raise WrongEndpointError(
            "The following statement types should be issued to the websocket endpoint '/query':\n\t* PRINT\n\t* SELECT"
        )


def connectors_refused() -> SqlError:
    return NotSupportedError(
        "Connectors do not run here yet: this server knows no Connect worker.",
        hint="Use a Kafka Connect cluster and its REST interface.",
    )


def refused(statement: Statement) -> SqlError:
    match statement:
        case CreateConnector() | DropConnector():
            return connectors_refused()
        case AlterSystem():
            return NotSupportedError("ALTER SYSTEM does not run here.", hint="Change the server's configuration file.")
        case RunScript() | Spool():
            return NotSupportedError("This statement runs in the shell only.", hint="Use `penstock sql`.")
        case AssertSchema():
            return NotSupportedError("ASSERT SCHEMA needs a schema registry, which this server does not use.")
        case AssertValues() | AssertSource():
            return NotSupportedError("ASSERT of rows and sources belongs to the test tool.")
        case other:
            return NotSupportedError(f"The statement {type(other).__name__} does not run here.")
