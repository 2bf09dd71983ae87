"""The interactive shell: a prompt that takes lines until a semicolon ends the statement."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from penstock.sql.parser import split_statements
from penstock.sql.shell.completion import Names, SqlCompleter
from penstock.sql.shell.output import Output
from penstock.sql.shell.rest import RestClient, ShellError
from penstock.sql.shell.session import BARE_WORDS, Left, Session

_PROMPT = "sql> "
_CONTINUED = "...> "


def run_prompt(client: RestClient, output: Output, session: Session) -> None:
    """Until the person leaves."""
    prompt: PromptSession[str] = PromptSession(
        history=_history(),
        completer=SqlCompleter(Names(client)),
        complete_while_typing=False,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=True,
        prompt_continuation=lambda *_: HTML(f"<ansibrightblack>{_CONTINUED}</ansibrightblack>"),
        key_bindings=_bindings(),
        enable_history_search=True,
    )
    session.history = prompt.history.get_strings
    while True:
        try:
            _do(prompt.prompt(HTML(f"<b>{_PROMPT}</b>")), output, session)
        except KeyboardInterrupt:
            # Ctrl-C at the prompt throws away what was typed.
            continue
        except (EOFError, Left):
            return


def _do(text: str, output: Output, session: Session) -> None:
    try:
        session.run(text)
    except ShellError as error:
        output.error(str(error))


def is_finished(text: str) -> bool:
    """Whether Enter runs the text rather than adding a line to it."""
    statements = split_statements(text)
    if not statements or all(each.complete for each in statements):
        return True
    return len(statements) == 1 and statements[0].text.strip().upper() in BARE_WORDS


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @Condition
    def finished() -> bool:
        from prompt_toolkit.application import get_app

        return is_finished(get_app().current_buffer.document.text)

    @bindings.add("enter", filter=finished)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _history() -> History:
    """In the person's state folder; without one that can be written, only for this session."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    file = Path(base) / "penstock" / "sql_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
