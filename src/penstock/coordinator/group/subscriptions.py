"""Which topics the members of a consumer group subscribe to, read from the metadata they join with.

That metadata belongs to the clients, so anything may be in it: a group whose metadata cannot be read is one whose
topics are unknown, and then it counts as subscribed to every topic.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from penstock.protocol.codec import decode
from penstock.protocol.errors import DecodeError
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

log = logging.getLogger(__name__)

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_VERSION_BYTES: Final = 2


def subscribed_topics(group_id: str, subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None when one of them cannot be read.

    Every version begins with the list of topics, so all are read as version 0.
    """
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            if len(subscription) < _VERSION_BYTES:
                raise DecodeError("the version is missing")
            body = memoryview(subscription)[_VERSION_BYTES:]
            topics.update(decode(ConsumerProtocolSubscription, 0, False, body).topics)
    except DecodeError as error:
        log.warning("a member's subscription cannot be read", extra={"group": group_id, "reason": str(error)})
        return None
    return frozenset(topics)
