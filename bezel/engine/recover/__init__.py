"""Recovery after a run that was cut off."""
