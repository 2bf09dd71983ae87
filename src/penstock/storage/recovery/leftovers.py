"""What an interrupted deletion, compaction or checkpoint leaves in a partition's directory, and the segments in it.

`.deleted` was about to be unlinked, `.cleaned` is a compaction that was not finished, `.tmp` a text file that was not:
all go. `.swap` is a finished compaction that was about to take the place of the segments it was made from: it does so
now. An index without its `.log` file goes as well.
"""

from __future__ import annotations

import logging

from penstock.base.errors import KafkaError
from penstock.base.ports import Files
from penstock.storage.segments.scan import iter_headers
from penstock.storage.segments.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

log = logging.getLogger(__name__)

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"

_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
_OFFSET_DIGITS = 20


def offset_in_name(name: str) -> int | None:
    """The base offset in the name of a segment's file, whatever its suffix; None for other files."""
    digits, dot, _ = name.partition(".")
    if dot and len(digits) == _OFFSET_DIGITS and digits.isascii() and digits.isdigit():
        return int(digits)
    return None


def tidy_directory(directory: str, files: Files) -> set[str]:
    """Clear the leftovers away; the names that remain."""
    names = set(files.list_directory(directory))
    cleaned = [
        offset for name in names if name.endswith(CLEANED_SUFFIX) and (offset := offset_in_name(name)) is not None
    ]
    for name in sorted(names):
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)) or (
            # A swap at or above an unfinished part belongs to the same unfinished operation.
            name.endswith(SWAP_SUFFIX) and cleaned and (offset_in_name(name) or 0) >= min(cleaned)
        ):
            _remove(directory, name, names, files)
    if any(name.endswith(SWAP_SUFFIX) for name in names):
        _finish_swap(directory, names, files)
    for name in sorted(names):
        if name.endswith(_SEGMENT_SUFFIXES[1:]) and name.partition(".")[0] + LOG_SUFFIX not in names:
            log.warning("index %s/%s has no log file and is removed", directory, name)
            _remove(directory, name, names, files)
    return names


def segment_base_offsets(names: set[str]) -> list[int]:
    offsets = (offset_in_name(name) for name in names if name.endswith(LOG_SUFFIX))
    return sorted(offset for offset in offsets if offset is not None)


def _remove(directory: str, name: str, names: set[str], files: Files) -> None:
    files.remove(f"{directory}/{name}")
    names.discard(name)


def _finish_swap(directory: str, names: set[str], files: Files) -> None:
    """Put the swap files in the place of the segments they cover."""
    swaps = sorted(name for name in names if name.endswith(SWAP_SUFFIX))
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and offset_in_name(name) is not None]
    if logs:
        start = min(offset_in_name(name) or 0 for name in logs)
        end = max(_next_offset(f"{directory}/{name}", offset_in_name(name) or 0, files) for name in logs)
        for name in sorted(names.difference(swaps)):
            offset = offset_in_name(name)
            if offset is not None and start <= offset < end and name.endswith(_SEGMENT_SUFFIXES):
                log.info("segment file %s/%s was replaced and is removed", directory, name)
                _remove(directory, name, names, files)
    for name in swaps:
        target = name.removesuffix(SWAP_SUFFIX)
        files.rename(f"{directory}/{name}", f"{directory}/{target}")
        names.discard(name)
        names.add(target)


def _next_offset(path: str, base_offset: int, files: Files) -> int:
    file = files.open(path, create=False)
    try:
        next_offset = base_offset
        for _, header in iter_headers(file, 0, file.size()):
            next_offset = header.next_offset
    except KafkaError as error:
        log.warning("%s", error)
    finally:
        file.close()
    return next_offset
