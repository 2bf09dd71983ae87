"""One module per API with its request, its response and the structures inside; generated, see the tool's name there.

Modules are imported one by one when their API is first used (`penstock.protocol.apis`), so keep this file empty of
imports.
"""
