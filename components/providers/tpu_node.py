"""States of stacks made before 0.1.0 name the provider by this module."""

from bezel_components.providers.tpu_node import TpuNodeProvider

__all__ = ["TpuNodeProvider"]
