"""Checks of the audit: one small file for each kind of finding, with its formula, its inputs and its certainty."""
