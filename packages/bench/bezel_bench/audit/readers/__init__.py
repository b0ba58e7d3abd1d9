"""Readers of other tools' result files, one module a format."""
