"""Secrets of Secret Manager that servers read: whether one has a value, and how a person sets it."""
