"""Bezel: Gemma 4 on vLLM on Google Cloud, with a planner, a benchmark, a command line and an embedded cloud."""
