"""Query of a stack's server: one prompt, its answer and times."""
