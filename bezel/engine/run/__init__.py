"""Runs of the engine as processes: its command, its output, its time limits."""
