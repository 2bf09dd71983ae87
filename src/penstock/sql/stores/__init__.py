"""Tables for reading: each is a SQLite file that follows a topic.

A store is a projection of its topic, never a truth of its own: rows and the position in the topic change in one SQLite
transaction, and a store that is lost is built again. `TableStore` is the file, `Follower` reads the topic into it, and
`Stores` opens them by name. Worker processes read the same file with `read_rows`.
"""
