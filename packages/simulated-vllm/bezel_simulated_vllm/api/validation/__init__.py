"""Validation of request bodies as vLLM does it: the recorded models, the rules that no model says, the parameters."""
