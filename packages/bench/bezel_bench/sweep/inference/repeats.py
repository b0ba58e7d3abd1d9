"""Repeatability of a measured load. Pure."""

REPEATABLE = 0.05
"""Two runs of one load on one server differ by about this much, relative."""
