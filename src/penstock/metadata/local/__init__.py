"""Metadata of a single broker, kept in one file of its first log directory.

Entry point: `store.LocalMetadataStore`. It must not know what the deltas mean beyond applying them to an image.
"""
