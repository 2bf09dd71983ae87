"""The functions of the language: one table, documented, typed, with a Python rule book and Spark expressions.

`registry.FunctionRegistry` is the door. `model` says what a function is, `signatures` reads the text signatures are
written in, `matching` chooses one for the arguments of a call; `scalar/`, `aggregate/` and `tables` hold the functions;
`user` loads those of the user's. Nothing here knows of Spark but the texts.
"""
