"""Findings about the load: client limits, drain, queues, timeouts, missing cells."""
