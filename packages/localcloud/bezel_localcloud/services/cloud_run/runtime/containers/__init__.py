"""Containers of an instance: the process of one, those beside the one that takes requests."""
