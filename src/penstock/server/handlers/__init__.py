"""One module per API, each exporting `API`.

What is not in `penstock.server.registry` is neither served nor announced.
"""
