from __future__ import annotations

import inspect
from typing import get_type_hints

from penstock.client.consumer.parallel.driver import AsyncParallelConsumer
from penstock.client.consumer.parallel.options import ParallelOptions


def test_the_typed_options_are_those_of_the_driver() -> None:
    parameters = inspect.signature(AsyncParallelConsumer).parameters.values()
    wanted = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert get_type_hints(ParallelOptions).keys() == wanted
