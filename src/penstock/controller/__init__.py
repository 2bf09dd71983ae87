"""The controller: what the cluster's metadata should become.

Decisions are pure functions from an image and a request to deltas and results (`topics`,
`new_partitions`, `configs`, `features`, `elections`, `reassignment`, `placement`, `brokers`, `partitions`,
`producer_ids`, `adoption`); `controller.Controller` runs them one after the other over a metadata store.
The package must not know logs, connections or the wire: handlers translate, and brokers follow the deltas.
"""
