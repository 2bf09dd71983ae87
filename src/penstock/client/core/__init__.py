"""What the three clients share: connections by node, metadata, coordinators, retries, the thread of the blocking face.

Entry points: `client.ClientCore` (asks brokers), `metadata.Metadata` (what the cluster looks like), `types` (values),
`loop_thread.LoopThread` and `face.BlockingFace` (the blocking classes). `nodes` and `rounds` choose whom to ask,
`coordinators` finds coordinators, `waiting` has retries; `snapshot` and `wanted` are pure parts of metadata.

It must not know what records, fetches or groups are: those who do stand above it.
"""
