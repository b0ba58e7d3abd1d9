"""Integrity rules of the catalogue's data."""
