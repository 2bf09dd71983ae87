"""What SET and DEFINE change for the statements after them in one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.sql.engine.properties import check_property
from penstock.sql.statements import DefineVariable, SetProperty, Statement, UndefineVariable, UnsetProperty


@dataclass(slots=True)
class Request:
    properties: dict[str, Any]
    variables: dict[str, str]

    def copy(self) -> Request:
        return Request(dict(self.properties), dict(self.variables))

    def note(self, statement: Statement) -> None:
        """Take a statement into account; one that sets nothing changes nothing."""
        match statement:
            case SetProperty(name=name, value=value):
                check_property(name, value)
                self.properties[name] = value
            case UnsetProperty(name=name):
                self.properties.pop(name, None)
            case DefineVariable(name=name, value=value):
                self.variables[name] = value
            case UndefineVariable(name=name):
                self.variables.pop(name, None)
