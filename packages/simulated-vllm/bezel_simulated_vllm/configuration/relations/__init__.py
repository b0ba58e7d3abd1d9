"""Relations on which a start of vLLM 0.32.0 fails, in its words."""
