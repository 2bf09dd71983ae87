"""Look after a cluster: create, describe and delete topics, see groups and their offsets, ask for things at once.

A method that is asked for one thing raises the error of that thing; asked for several, it raises `AdminErrors`, which
holds what failed and what succeeded.
"""

from __future__ import annotations

import penstock
from common import arguments


def main() -> None:
    args = arguments(__doc__, topic="administration", group="administration")
    with penstock.Admin(bootstrap_servers=args.bootstrap_server) as admin:
        cluster = admin.describe_cluster()
        print(
            f"{len(cluster.nodes)} broker(s), controller {cluster.controller.id if cluster.controller else 'unknown'}"
        )

        wanted = penstock.NewTopic(name=args.topic, num_partitions=3, configs={"retention.ms": "3600000"})
        created = admin.create_topics([wanted])[args.topic]
        print(f"created {created.name} with {created.num_partitions} partitions")
        try:
            admin.create_topics([wanted])
        except penstock.TopicAlreadyExists as error:
            print(f"again: {error}")

        resource = penstock.ConfigResource(type=penstock.ConfigResourceType.TOPIC, name=args.topic)
        entry = admin.describe_configs([resource])[resource]["retention.ms"]
        print(f"retention.ms is {entry.value}")

        # Offsets of a group without members can be set by hand, here so that it will begin at 5.
        partition = penstock.TopicPartition(args.topic, 0)
        admin.alter_group_offsets(args.group, {partition: 5})
        print(f"the group's offset is {admin.list_group_offsets([args.group])[args.group][partition]}")

        # `submit` has the same methods, which give futures.
        ends = admin.submit.list_offsets({partition: penstock.OffsetSpec.LATEST})
        topics = admin.submit.list_topics()
        print(f"end offset {ends.result(30)[partition].offset}; listed: {args.topic in topics.result(30)}")

        admin.delete_groups([args.group])
        admin.delete_topics([args.topic])
        print(f"deleted: {args.topic not in admin.list_topics()}")


if __name__ == "__main__":
    main()
