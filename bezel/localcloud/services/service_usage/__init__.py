"""Service Usage v1."""
