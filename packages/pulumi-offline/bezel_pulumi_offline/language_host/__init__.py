"""Language hosts of Python and Node: the engine's plugins that run programs, where the published ones cannot be had."""
