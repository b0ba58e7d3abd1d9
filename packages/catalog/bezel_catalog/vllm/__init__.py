"""Recorded options and environment variables of vLLM releases, and the recorders."""
