"""Benchmark results as text on the terminal."""
