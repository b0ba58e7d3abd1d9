"""Stand-in commands of a machine: each runs by itself, with the standard library only."""
