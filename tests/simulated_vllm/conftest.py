"""The models that the tests of the simulated server's package have."""

from simulated_vllm_support.fixtures import mount

__all__ = ["mount"]
