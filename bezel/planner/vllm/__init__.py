"""vLLM's command line and environment: arguments, options, conflicts between them, and ways to load weights."""
