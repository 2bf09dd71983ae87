"""The logs of a broker on disk, file by file as Apache Kafka writes them.

Duty: segments and their indexes, appends, reads by offset and timestamp, recovery, retention, producer state, leader
epochs, checkpoints, log directories.

Entry points: `manager.manager.LogManager` (all logs of a broker), `log.Log` (one partition's),
`segments.slices.FileSlice` (what a read returns), `config.LogConfig`.

It must not know requests, partitions' leaders and followers, topics' metadata, or sockets. All disk access goes
through `penstock.base.ports.Files`, so that a simulated disk can take its place.
"""
