"""Shared parts of the benchmark commands: targets, load options, cells, checkpoints."""
