"""Address of a stack as it is now: the state of its certificate, and whether callers get an answer at it."""
