"""Engine of the simulated server: scheduler, KV cache, step times, tokens."""
