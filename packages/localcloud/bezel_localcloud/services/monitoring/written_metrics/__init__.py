"""Metrics that collectors write: their descriptors, points and aggregations in Monitoring v3."""
