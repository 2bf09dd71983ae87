"""The `penstock` command, one module per noun.

`main` finds commands by name and imports only the one that runs, so that `--help` stays quick.
"""
