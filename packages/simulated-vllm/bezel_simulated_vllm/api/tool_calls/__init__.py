"""Calls of tools: what the server's parser of them makes of a choice, and the grammar that it forces an answer by."""
