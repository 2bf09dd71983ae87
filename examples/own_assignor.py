"""Share partitions by a rule of your own: the member called "big" gets all partitions but one.

The leader of a group, one of its members, runs the assignor; every member must offer it by the same name. A member may
tell the assignor about itself in a few bytes (`subscription_user_data`), which here is its size.
"""

from __future__ import annotations

from collections.abc import Mapping

import penstock
from common import arguments, make_topic


class BySize(penstock.AssignorBase):
    name = "by-size"

    def __init__(self, size: bytes) -> None:
        self._size = size

    def subscription_user_data(self, topics: frozenset[str]) -> bytes:
        return self._size

    def assign(
        self, cluster: penstock.ClusterSnapshot, subscriptions: Mapping[str, penstock.MemberSubscription]
    ) -> dict[str, list[penstock.TopicPartition]]:
        topics = {topic for each in subscriptions.values() for topic in each.topics}
        partitions = [
            penstock.TopicPartition(topic, number)
            for topic in sorted(topics)
            for number in range(cluster.partition_count(topic))
        ]
        small = sorted(member for member, each in subscriptions.items() if each.user_data != b"big")
        big = sorted(set(subscriptions) - set(small))
        # One partition for each small member, the rest for the first big one; every partition must find a reader.
        shares = {member: [partition] for member, partition in zip(small, partitions, strict=False)}
        rest = partitions[len(shares) :]
        if rest:
            heir = (big or small)[0]
            shares[heir] = shares.get(heir, []) + rest
        return {member: shares.get(member, []) for member in subscriptions}


def main() -> None:
    args = arguments(__doc__, topic="own-assignor", group="own-assignor")
    make_topic(args.bootstrap_server, args.topic, partitions=6)

    def join(size: bytes) -> penstock.Consumer:
        consumer = penstock.Consumer(
            bootstrap_servers=args.bootstrap_server,
            group_id=args.group,
            client_id=size.decode(),
            partition_assignment_strategy=[BySize(size)],
            heartbeat_interval_ms=300,  # hear of a rebalance soon
        )
        consumer.subscribe([args.topic])
        return consumer

    with join(b"big") as big, join(b"small") as small:
        # Rebalances make progress inside of poll. In real life each member has a thread or a process of its own.
        while len(small.assignment()) != 1 or len(big.assignment()) != 5:
            big.poll(timeout_ms=100)
            small.poll(timeout_ms=100)
        print(f"big reads {sorted(each.partition for each in big.assignment())}")
        print(f"small reads {sorted(each.partition for each in small.assignment())}")


if __name__ == "__main__":
    main()
