"""Statements in, effects out: what a server does with each statement, and the queries people watch and ask."""
