"""Runs of the engine: the process, its display, what it waits for, and the record of what it leaves."""
