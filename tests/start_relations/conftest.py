"""Settings of the simulated server from a command line, as the tests of its package make them."""

from simulated_vllm_support.fixtures import environment, mount, settings

__all__ = ["environment", "mount", "settings"]
