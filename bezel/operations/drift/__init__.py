"""Drift of a deployed stack from its program."""
