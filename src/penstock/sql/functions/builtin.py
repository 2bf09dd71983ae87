"""Every built-in function."""

from __future__ import annotations

from penstock.sql.functions import tables
from penstock.sql.functions.aggregate import by_offset, collecting, counting, extremes, statistics
from penstock.sql.functions.model import Function
from penstock.sql.functions.scalar import (
    arrays,
    encodings,
    json_strings,
    lambdas,
    maps,
    masks,
    mathematics,
    nulls,
    numbers,
    places,
    regexps,
    strings,
    times,
    urls,
)

FUNCTIONS: tuple[Function, ...] = tuple(
    function
    for module in (
        arrays,
        encodings,
        json_strings,
        lambdas,
        maps,
        masks,
        mathematics,
        nulls,
        numbers,
        places,
        regexps,
        strings,
        times,
        urls,
        counting,
        extremes,
        collecting,
        by_offset,
        statistics,
        tables,
    )
    for function in module.FUNCTIONS
)
