"""Accounts of keys: counts, limits, and what the door's bucket holds of both."""
