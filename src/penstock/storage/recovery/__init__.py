"""Opening a log that may have been left at any byte: `loader.LogLoader`, and the leftovers of interrupted work."""
