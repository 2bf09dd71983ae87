"""Why a known key does nothing here: said once per reason, shown in warnings and in the documentation."""

from __future__ import annotations

from typing import Final

ALONE: Final = "a broker that is alone has no other brokers to deal with"
NO_COMPACTION: Final = "logs are not compacted yet"
NO_GROUPS: Final = "only the classic group protocol is served"
NO_JVM: Final = "Java classes are not loaded"
NO_KERBEROS: Final = "Kerberos is not supported"
NO_MOVES: Final = "replicas do not move between log directories"
NO_PREALLOCATE: Final = "segment files grow as they are written"
NO_PURGATORY: Final = "a finished wait is removed at once"
NO_QUORUM: Final = "there is no KRaft quorum: a broker that is alone keeps its metadata in a file"
NO_QUOTAS: Final = "clients are not throttled yet"
NO_SECURITY: Final = "only PLAINTEXT listeners without authorization work at present"
NO_SHARE: Final = "share groups are not served"
NO_START_LIMIT: Final = "the start is not limited in time"
NO_STREAMS: Final = "streams groups are not served"
NO_TELEMETRY: Final = "client telemetry is not served"
NO_TIERED: Final = "there is no tiered storage"
NO_TOKENS: Final = "delegation tokens are not served"
NO_TRANSACTIONS: Final = "two-phase commit is not served"
NO_UNSTABLE: Final = "no unstable version is served"
ONE_LOOP: Final = "one event loop serves all connections; penstock.io.threads sets the worker threads beside it"
OWN_METRICS: Final = "metrics are counted since the start and read by Prometheus"
