"""Deletions that would delete nothing: a table's changelog does not carry them."""

from __future__ import annotations

import pyarrow

from penstock.sql.formats.decoding import DELETED
from penstock.sql.formats.rows import python_rows
from penstock.sql.plan.nodes import Sink
from penstock.sql.schema import WINDOW_COLUMNS
from penstock.sql.stores.table_store import TableStore


def without_needless_deletions(rows: pyarrow.Table, sink: Sink, store: TableStore) -> pyarrow.Table:
    """Leave out deletions of rows that are not there: neither in the table nor earlier in this batch."""
    deleted = rows[DELETED].to_pylist()
    if not any(deleted):
        return rows
    keys = python_rows(rows, {column.name: column.type for column in sink.schema.key})
    windows = python_rows(rows, WINDOW_COLUMNS) if sink.windowed is not None else [None] * len(keys)
    identities = list(zip(keys, windows, strict=True))
    asked = list(dict.fromkeys(_hashable(each) for each, gone in zip(identities, deleted, strict=True) if gone))
    by_form = {_hashable(each): each for each in identities}
    there = dict(zip(asked, store.contains([by_form[form] for form in asked]), strict=True))
    keep = []
    for identity, gone in zip(identities, deleted, strict=True):
        form = _hashable(identity)
        keep.append(not gone or there[form])
        there[form] = not gone
    return rows.filter(pyarrow.array(keep, pyarrow.bool_()))


def _hashable(identity: object) -> object:
    """Keys may hold lists and dicts: their text tells them apart as well."""
    try:
        hash(identity)
    except TypeError:
        return repr(identity)
    return identity
