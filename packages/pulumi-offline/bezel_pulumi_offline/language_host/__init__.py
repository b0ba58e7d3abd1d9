"""Language host of Python programs: the engine's plugin that runs them, where the published one cannot be had."""
