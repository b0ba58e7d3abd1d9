"""Audit of other people's benchmark results: read them into one table and find impossible figures.

Each format has a reader, each kind of finding a small file with its formula and its inputs. A value that is not stated
is never held against a source. Importing this package loads nothing.
"""
