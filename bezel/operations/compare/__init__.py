"""Comparison of one model on every accelerator: figures, table, and the simulated server's second opinion."""
