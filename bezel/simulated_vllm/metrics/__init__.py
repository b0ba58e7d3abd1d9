"""Metrics of the server in Prometheus' text form, for /metrics."""
