"""Metrics of a server, explained: load, latencies, failures."""
