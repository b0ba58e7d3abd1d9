"""Recovery of a stack after a run that was killed, or whose changes have an unknown outcome."""
