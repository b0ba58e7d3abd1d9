"""The audit: other people's results, read as one table, and what of them cannot be as it is said.

Each format has a reader, each fault a small file with its formula and what it needs. What is not stated is never held
against anyone. Importing this package loads nothing.
"""
