"""Proof of the load client: its figures against the log of a server that knows the truth."""
