"""Commands of a machine that are ours: each runs by itself, with the standard library only."""
