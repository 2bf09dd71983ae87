"""The open-file limit: raised as far as the system allows at start, and reported when that is little.

Every segment and every connection holds a file; a broker that runs out of them refuses clients or stops a partition, so
the operator should hear of it before it happens.
"""

from __future__ import annotations

import logging
import resource

ENOUGH_FILES = 10_000

log = logging.getLogger(__name__)


def raise_file_limit() -> int:
    """Raise the soft limit to the hard one and return what is in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = 1_048_576 if hard == unlimited else hard
    if soft != unlimited and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (ValueError, OSError) as error:
            log.warning("the open-file limit stays at %d: %s", soft, error)
    if soft != unlimited and soft < ENOUGH_FILES:
        log.warning(
            "the open-file limit is only %d; raise it to %d or more (ulimit -n, or LimitNOFILE of the service)",
            soft,
            ENOUGH_FILES,
        )
    return soft
