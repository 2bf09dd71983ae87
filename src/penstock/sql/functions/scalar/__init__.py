"""Scalar functions, one module per area. `declaring.scalar` makes the entries of the table."""
