"""Statements one by one, with what the session remembers: properties (SET), variables (DEFINE), the last command.

What concerns only this shell is done here; SELECT and PRINT are read row by row; everything else goes to the server as
it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import penstock
from penstock.sql.errors import SqlError
from penstock.sql.parser import RawStatement, parse, split_statements, substitute_variables
from penstock.sql.shell.output import Form, Output
from penstock.sql.shell.rest import RefusedError, RestClient, ShellError
from penstock.sql.statements import (
    DefineVariable,
    RunScript,
    SetProperty,
    Spool,
    UndefineVariable,
    UnsetProperty,
)

SCRIPTS_NESTED_MAX: Final = 10
LOCAL_WORDS: Final = ("SET", "UNSET", "DEFINE", "UNDEFINE", "RUN", "SPOOL")
LEAVING_WORDS: Final = ("EXIT", "QUIT")
HISTORY_SHOWN_MAX: Final = 100
_FORMS: Final[dict[str, Form]] = {"TABLE": "table", "TABULAR": "table", "JSON": "json"}

HELP: Final = """\
Statements end with a semicolon and may span lines. The server knows, among others:
  SHOW STREAMS | TABLES | TOPICS | QUERIES | FUNCTIONS | TYPES | PROPERTIES    DESCRIBE name [EXTENDED]
  CREATE STREAM name (columns) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')     DESCRIBE FUNCTION name
  CREATE STREAM | TABLE name AS SELECT ...                                     EXPLAIN statement
  SELECT ... EMIT CHANGES   rows as they come                                  TERMINATE | PAUSE | RESUME id
  SELECT ...                rows that are there                                DROP STREAM | TABLE name
  INSERT INTO name VALUES (...)                                                PRINT 'topic' FROM BEGINNING
This shell itself:
  SET 'property' = 'value', UNSET 'property'     for the statements that follow, e.g. 'auto.offset.reset' = 'earliest'
  DEFINE name = 'value', UNDEFINE name           variables, used as ${name}; SHOW VARIABLES lists them
  RUN SCRIPT 'file', SPOOL 'file', SPOOL OFF     statements from a file; everything shown also into a file
  OUTPUT JSON, OUTPUT TABLE                      what answers and rows look like; OUTPUT tells which it is
  SERVER, VERSION                                the server's address and how it is; versions of both
  HISTORY, CLEAR                                 statements typed before; an empty screen
  HELP, EXIT                                     Ctrl-C ends a running query, Ctrl-D leaves"""


class Left(Exception):  # noqa: N818 - not an error
    """The person wants to leave."""


class Session:
    def __init__(self, client: RestClient, output: Output) -> None:
        self._client = client
        self._output = output
        self.properties: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self._sequence_number: int | None = None
        self._scripts = 0
        self.history: Callable[[], Sequence[str]] = tuple
        """What was typed before, the oldest first."""

    def run(self, text: str) -> None:
        """All statements of a text; the first that fails ends it with a ShellError."""
        for raw in split_statements(text):
            self.run_one(raw)

    def run_one(self, raw: RawStatement) -> None:
        words = raw.text.split(None, 2)
        first = words[0].upper() if words else ""
        try:
            if first in LEAVING_WORDS:
                raise Left
            if first == "HELP":
                self._output.say(HELP)
            elif len(words) == 1 and first in _COMMANDS:
                _COMMANDS[first](self)
            elif first == "OUTPUT" and len(words) == 2:
                self._set_form(words[1])
            elif first in LOCAL_WORDS:
                self._run_here(raw.text)
            elif [word.upper() for word in words] in (["SHOW", "VARIABLES"], ["LIST", "VARIABLES"]):
                self._show_variables(raw.text)
            elif first in ("SELECT", "PRINT"):
                self._query(f"{raw.text};")
            else:
                self._execute(f"{raw.text};")
        except SqlError as error:
            raise ShellError(str(error)) from None

    def _run_here(self, text: str) -> None:
        (parsed,) = parse(text, variables=self.variables)
        do = _DONE_HERE[type(parsed.statement)]
        do(self, parsed.statement)

    def _set(self, statement: SetProperty) -> None:
        if not self._client.is_valid_property(statement.name):
            raise ShellError(
                f"{statement.name} is not a property that can be set: SHOW PROPERTIES; lists those there are."
            )
        # The server knows the values too, and forgets with its answer what SET sets.
        name, value = (text.replace("'", "''") for text in (statement.name, statement.value))
        self._client.execute(f"SET '{name}'='{value}';", {}, {})
        before = self.properties.get(statement.name)
        self.properties[statement.name] = statement.value
        changed = "" if before is None else f" (was '{before}')"
        self._output.say(f"{statement.name} is '{statement.value}'{changed} for the statements that follow.")

    def _unset(self, statement: UnsetProperty) -> None:
        if self.properties.pop(statement.name, None) is None:
            raise ShellError(f"{statement.name} is not set in this session.")
        self._output.say(f"{statement.name} has the server's value again.")

    def _define(self, statement: DefineVariable) -> None:
        self._forget_variable(statement.name)
        self.variables[statement.name] = statement.value

    def _undefine(self, statement: UndefineVariable) -> None:
        if not self._forget_variable(statement.name):
            raise ShellError(f"The variable {statement.name} is not defined.")

    def _forget_variable(self, name: str) -> bool:
        """Names of variables have no case."""
        same = [each for each in self.variables if each.lower() == name.lower()]
        for each in same:
            del self.variables[each]
        return bool(same)

    def _run_script(self, statement: RunScript) -> None:
        path = str(Path(statement.path).expanduser())
        if self._scripts >= SCRIPTS_NESTED_MAX:
            raise ShellError(
                f"{path} is run from a script that is run from a script ...: at most {SCRIPTS_NESTED_MAX} deep."
            )
        text = read_script(path)
        self._scripts += 1
        try:
            self.run(text)
        finally:
            self._scripts -= 1

    def _spool(self, statement: Spool) -> None:
        try:
            self._output.spool(None if statement.path is None else str(Path(statement.path).expanduser()))
        except OSError as error:
            raise ShellError(f"{statement.path} cannot be written: {(error.strerror or str(error)).lower()}.") from None

    def _show_variables(self, text: str) -> None:
        listed = [{"name": name, "value": value} for name, value in sorted(self.variables.items())]
        self._output.entity({"@type": "variables", "statementText": text, "variables": listed})

    def _tell_form(self) -> None:
        self._output.say(f"Output is {self._output.form}; OUTPUT JSON; and OUTPUT TABLE; change it.")

    def _set_form(self, word: str) -> None:
        form = _FORMS.get(word.strip("'").upper())
        if form is None:
            raise ShellError(f"{word} is no form of output: TABLE and JSON are.")
        self._output.form = form
        self._output.remark("Output is table.")

    def _tell_server(self) -> None:
        info = self._client.info()
        self._output.say(f"{self._client.url}: service {info['ksqlServiceId']}, {info['serverStatus'].lower()}.")

    def _tell_versions(self) -> None:
        self._output.say(f"Shell: Penstock {penstock.__version__}. Server: {self._client.info()['version']}.")

    def _show_history(self) -> None:
        for text in self.history()[-HISTORY_SHOWN_MAX:]:
            self._output.say(text)

    def _clear(self) -> None:
        self._output.clear()

    def _query(self, text: str) -> None:
        reader = self._client.query(self._substituted(text), self.properties, {})
        count = 0
        interrupted = False
        view = self._output.rows(reader.columns)
        try:
            for row in reader.rows():
                view.row(row)
                count += 1
        except KeyboardInterrupt:
            interrupted = True
        finally:
            reader.close()
            view.end(count, interrupted=interrupted)

    def _execute(self, text: str) -> None:
        try:
            entities = self._client.execute(self._substituted(text), self.properties, {}, self._sequence_number)
        except RefusedError as error:
            self._show(error.entities)
            raise
        self._show(entities)
        if not entities and text[:6].upper() == "INSERT":
            self._output.remark("The row is written.")

    def _substituted(self, text: str) -> str:
        return substitute_variables(text, self.variables)

    def _show(self, entities: list[dict[str, Any]]) -> None:
        for entity in entities:
            if isinstance(number := entity.get("commandSequenceNumber"), int):
                self._sequence_number = max(number, self._sequence_number or 0)
            self._output.entity(entity)


def read_script(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ShellError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError:
        raise ShellError(f"{path} is not text in UTF-8.") from None


_DONE_HERE: Final[dict[type, Callable[[Session, Any], None]]] = {
    SetProperty: Session._set,
    UnsetProperty: Session._unset,
    DefineVariable: Session._define,
    UndefineVariable: Session._undefine,
    RunScript: Session._run_script,
    Spool: Session._spool,
}

_COMMANDS: Final[dict[str, Callable[[Session], None]]] = {
    "OUTPUT": Session._tell_form,
    "SERVER": Session._tell_server,
    "VERSION": Session._tell_versions,
    "HISTORY": Session._show_history,
    "CLEAR": Session._clear,
}

BARE_WORDS: Final = (*LEAVING_WORDS, "HELP", *_COMMANDS)
"""Commands that need no semicolon."""
