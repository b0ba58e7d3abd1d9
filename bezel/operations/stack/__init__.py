"""Stacks of a project: their files with what the backend holds of them, and edits of a file."""
