"""The Prometheus query language: text, tree, and values at a time. Pure; the API is `monitoring.prometheus_api`."""
