"""One module a Google API: its paths, its messages, the permission that each call needs."""
