"""Where the columns and functions of a statement were written, for errors that are found when it is planned.

Expressions are values and know no place: two columns of one name are equal, and a plan is the same wherever its text
stood. So the parser notes places beside them. A column is found by identity, since one that is fine in one clause may
be unknown in another; a function that does not exist is unknown everywhere, so its name will do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.sql.errors import SqlError
from penstock.sql.expressions.nodes import Column

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(frozen=True, slots=True)
class Places:
    _columns: dict[int, tuple[Column, Place]] = field(default_factory=dict)
    """By identity; the column is held, so that no other can get its."""
    _functions: dict[str, Place] = field(default_factory=dict)

    def note_column(self, column: Column, place: Place) -> None:
        self._columns[id(column)] = (column, place)

    def note_function(self, name: str, place: Place) -> None:
        self._functions.setdefault(name, place)

    def tell(self, error: SqlError) -> None:
        """Give an error the place of what it is about, if that is known."""
        if error.line is not None:
            return
        if isinstance(error.about, str):
            place = self._functions.get(error.about)
        else:
            _, place = self._columns.get(id(error.about), (None, None))
        if place is not None:
            error.line, error.column = place
