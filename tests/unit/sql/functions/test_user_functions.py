"""Functions of the user's from a folder."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.evaluation import compile_expression
from penstock.sql.expressions.spark_sql import python_functions, to_spark_sql
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse_expression
from penstock.sql.types import BIGINT, STRING, Array, Map
from penstock.sql.types import Decimal as DecimalType

HEAD = "from __future__ import annotations\nfrom penstock.sql.functions.user import scalar\n"


def registry(folder: Path, *files: str) -> FunctionRegistry:
    for number, text in enumerate(files):
        (folder / f"file{number}.py").write_text(HEAD + text)
    return FunctionRegistry.builtin().with_user_functions(folder)


def value(functions: FunctionRegistry, text: str) -> object:
    return compile_expression(parse_expression(text), {}, functions)({})


def test_a_marked_function_can_be_called(tmp_path: Path) -> None:
    functions = registry(
        tmp_path, "@scalar\ndef shout(text: str) -> str:\n    'Loud.'\n    return text.upper() + '!'\n"
    )
    assert value(functions, "SHOUT('hey')") == "HEY!"
    assert value(functions, "SHOUT(NULL)") is None
    shout = functions.scalar("SHOUT")
    assert shout is not None
    assert (shout.description, shout.category, shout.author) == ("Loud.", "USER", "file0.py")
    assert shout.signatures[0].describe("SHOUT") == "SHOUT(STRING text)"


def test_types_come_from_annotations_and_from_text(tmp_path: Path) -> None:
    functions = registry(
        tmp_path,
        "import datetime\nfrom decimal import Decimal\nfrom typing import Annotated\n"
        "@scalar\ndef tags(counts: dict[str, int], more: list[str] | None) -> list[str]:\n"
        "    return [*counts, *more]\n"
        "@scalar(name='net', returns='DECIMAL(10, 2)')\n"
        "def net_price(price: Annotated[Decimal, 'DECIMAL(10, 2)']):\n    return price / 2\n",
    )
    tags, net = functions.scalar("TAGS"), functions.scalar("NET")
    assert tags is not None
    assert net is not None
    assert [each.pattern for each in tags.signatures[0].parameters] == [Map(STRING, BIGINT), Array(STRING)]
    assert tags.signatures[0].returns == Array(STRING)
    assert net.signatures[0].returns == DecimalType(10, 2)
    assert value(functions, "NET(CAST(3.01 AS DECIMAL(10, 2)))") == Decimal("1.51")


def test_integers_widen_and_results_fit_their_type(tmp_path: Path) -> None:
    functions = registry(tmp_path, "@scalar\ndef half(number: int) -> float:\n    return number // 2\n")
    assert value(functions, "HALF(7)") == 3.0
    assert isinstance(value(functions, "HALF(7)"), float)


def test_integers_in_arrays_widen_too(tmp_path: Path) -> None:
    functions = registry(tmp_path, "@scalar\ndef most(numbers: list[int]) -> int:\n    return max(numbers)\n")
    assert value(functions, "MOST(ARRAY[1, 3])") == 3
    with pytest.raises(SemanticError, match=r"MOST\(ARRAY<BIGINT> numbers\)"):
        value(functions, "MOST(ARRAY['a'])")


def test_nulls_are_passed_when_asked_for(tmp_path: Path) -> None:
    functions = registry(
        tmp_path,
        "@scalar(nulls=True)\ndef shown(text: str | None) -> str:\n    return 'none' if text is None else text\n",
    )
    assert value(functions, "SHOWN(NULL)") == "none"


def test_any_number_of_arguments(tmp_path: Path) -> None:
    functions = registry(tmp_path, "@scalar\ndef total(*numbers: int) -> int:\n    return sum(numbers)\n")
    assert value(functions, "TOTAL(1, 2, 3)") == 6


def test_a_function_that_raises_gives_null_and_a_message(tmp_path: Path) -> None:
    functions = registry(tmp_path, "@scalar\ndef fails(text: str) -> str:\n    raise RuntimeError('no ' + text)\n")
    messages: list[str] = []
    evaluate = compile_expression(parse_expression("FAILS('luck')"), {}, functions, messages.append)
    assert evaluate({}) is None
    assert messages == ["FAILS: no luck"]
    (use,) = python_functions(parse_expression("FAILS('luck')"), {}, functions)
    assert use.function(messages.append, "luck") is None
    assert messages == ["FAILS: no luck"] * 2
    assert to_spark_sql(parse_expression("FAILS('luck')"), {}, functions) == f"{use.name}('luck')"


def test_modules_of_user_functions_are_not_importable_so_that_spark_sends_them_by_value(tmp_path: Path) -> None:
    functions = registry(tmp_path, "@scalar\ndef one() -> int:\n    return 1\n")
    one = functions.scalar("ONE")
    assert one is not None
    assert one.python.__module__ not in sys.modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:\n", "file0.py cannot be loaded: line 3: invalid syntax"),
        ("import nothing_there\n", "line 3: ModuleNotFoundError: No module named 'nothing_there'"),
        ("@scalar\ndef f(x) -> int:\n    return x\n", "Function 'F' in"),
        ("@scalar\ndef f(x) -> int:\n    return x\n", "'x' has no type: annotate it"),
        ("@scalar\ndef f(x: int):\n    return x\n", "'return' has no type"),
        ("@scalar\ndef f(x: complex) -> int:\n    return x\n", "stands for no type"),
        ("@scalar(returns='NUMBER')\ndef f(x: int):\n    return x\n", "NUMBER"),
        ("@scalar(parameters=[])\ndef f(x: int) -> int:\n    return x\n", "it has 1 parameters, but 0 types are given"),
        ("@scalar\ndef abs(x: int) -> int:\n    return x\n", "Function 'ABS' exists already."),
    ],
)
def test_what_is_wrong_is_told_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SemanticError) as refusal:
        registry(tmp_path, text)
    assert message in str(refusal.value)


def test_a_name_twice_is_told_with_both_files(tmp_path: Path) -> None:
    text = "@scalar\ndef f(x: int) -> int:\n    return x\n"
    with pytest.raises(SemanticError, match=r"Function 'F' is in .*file0.py and in .*file1.py"):
        registry(tmp_path, text, text)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="does not exist"):
        FunctionRegistry.builtin().with_user_functions(tmp_path / "nowhere")
