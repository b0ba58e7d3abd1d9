"""Requests outside the load: probes, counters, drain, and the server's own reports."""
