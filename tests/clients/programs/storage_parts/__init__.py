"""The calls of `../storage.py`, by matter; importing a module notes its calls."""
