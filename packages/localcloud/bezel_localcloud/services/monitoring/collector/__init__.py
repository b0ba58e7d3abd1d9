"""Collector of Prometheus series, in place of Google's sidecar: its configuration, scrapes, written samples."""
