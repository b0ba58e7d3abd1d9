"""Weights of a stack's model: their source, the copy into the stack's bucket, and what is there."""
