"""Options of vLLM against the device that serves the model."""
