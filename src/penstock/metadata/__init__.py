"""Cluster metadata: an immutable image of the cluster, and the versioned deltas that change it.

Entry points: `image.ClusterImage`, the deltas in `deltas`, the port `store.MetadataStore`, and the single broker's
implementation `local.store.LocalMetadataStore`. The package decides nothing (that is `penstock.controller`) and must
not know logs, replication or the wire: whoever needs to act on a change subscribes to the store.
"""
