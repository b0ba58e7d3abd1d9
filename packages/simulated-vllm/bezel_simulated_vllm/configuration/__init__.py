"""Configuration of the simulated server: from arguments, machine and model files to settings, or to vLLM's refusal."""
