"""Findings about figures: units, sums, means, lengths."""
