"""The judge of changes: packs, limits, prices and the code that applies them, compared with those that were allowed."""
