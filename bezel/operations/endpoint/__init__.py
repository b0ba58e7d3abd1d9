"""Address of a stack: where callers reach it, as whom, by which command."""
