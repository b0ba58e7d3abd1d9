"""From a command line, a machine and model files to the engine's settings, or to vLLM's refusal."""
