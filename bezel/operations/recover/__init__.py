"""Recovery of a stack after a run that was killed."""
