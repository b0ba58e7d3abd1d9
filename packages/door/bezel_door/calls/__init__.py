"""Calls of the door: paths, keys in headers, documents of requests, events of streams, tokens, errors."""
