"""Prices of stacks as operations show them."""
