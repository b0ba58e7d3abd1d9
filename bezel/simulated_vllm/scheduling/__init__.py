"""The engine: scheduler, KV cache, step times, tokens."""
