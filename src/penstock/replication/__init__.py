"""Partitions as a broker holds them: leader or follower, in-sync replicas, high watermark, and requests that wait.

Entry points: `manager.ReplicaManager`, which follows the metadata and serves appends and fetches, and
`partition.Partition`, the pure core of one partition. `delayed` holds fetches and produces until they can be answered.
The package must not know the wire, connections or who the controller is: a wish for another ISR leaves through a
callable that the composition root fills.
"""
