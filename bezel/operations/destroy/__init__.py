"""Destruction of a stack, after its name is given."""
