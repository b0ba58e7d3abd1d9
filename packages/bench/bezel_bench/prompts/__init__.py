"""Prompts of an exact length in tokens, and the request bodies around them."""
