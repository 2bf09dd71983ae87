"""Assignors: who of a group reads which partition. Pure: subscriptions in, assignments out.

The leader of a group runs one of them, the one that all members offer. `base` has the values and the protocol that a
user's own assignor fulfils; `catalogue.resolve_assignors` turns `partition.assignment.strategy` into objects.
"""
