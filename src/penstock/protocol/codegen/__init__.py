"""Writes the source text of readers and writers from a message class. Used by `penstock.protocol.codec` alone."""
