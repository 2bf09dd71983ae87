"""The planner on data files: statements, and the plans or errors they must give."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.sql.errors import SqlError
from penstock.sql.plan.explain import explain
from penstock.sql.plan.nodes import from_json, to_json
from tests.unit.sql.blocks import Block, parameters
from tests.unit.sql.plan.planning import plan


def answer(text: str) -> str:
    try:
        planned = plan(text)
    except SqlError as error:
        return f"{type(error).__name__}: {error}"
    assert from_json(to_json(planned.plan)) == planned.plan
    return "\n".join([explain(planned.plan), *(f"WARNING {warning}" for warning in planned.warnings)])


@pytest.mark.parametrize("block", parameters(Path(__file__).parent, answer))
def test_plan_is_as_written(block: Block) -> None:
    assert answer(block.statement) == block.expected
