"""State of stacks made before 0.1.0 names its provider by this module. To be removed with 0.1.0."""

from components.providers.tpu_node import TpuNodeProvider

__all__ = ["TpuNodeProvider"]
