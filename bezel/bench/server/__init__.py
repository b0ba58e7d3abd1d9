"""Requests beside the load: probes, counters, drain, and what the server says of itself."""
