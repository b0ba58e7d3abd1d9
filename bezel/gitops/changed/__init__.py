"""Stacks that a change concerns: by imports of the program, rows of the catalogue, and the stacks' own files."""
