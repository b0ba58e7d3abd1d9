"""Checks of the audit: one small file for each fault, with its formula, its inputs and how certain it is."""
