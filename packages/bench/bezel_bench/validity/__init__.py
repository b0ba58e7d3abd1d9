"""Validity checks: whether a cell's figures can be believed."""
