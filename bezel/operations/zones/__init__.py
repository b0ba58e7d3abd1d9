"""Zones that have an accelerator, and the search through them."""
