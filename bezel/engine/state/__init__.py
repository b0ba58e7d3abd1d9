"""State of a stack: where it lies, how it is read, and its key."""
