"""Models that a stack's server serves."""
