"""Findings about hardware: rooflines, KV cache precision, speculation."""
