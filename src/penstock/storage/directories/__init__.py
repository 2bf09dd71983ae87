"""Log directories: whose they are, who holds them, how partitions are named in them.

`log_directory.LogDirectory` is one, `directory_set.DirectorySet` all of a broker's.
"""
