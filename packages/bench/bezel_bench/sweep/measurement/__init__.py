"""Measurement of cells within a budget: each once, a second try where one is due, all in a journal."""
