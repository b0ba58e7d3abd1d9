"""Advice on what to change on a stack."""
