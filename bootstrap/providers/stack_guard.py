"""States of stacks made before 0.1.0 name the provider by this module."""

from bezel_bootstrap.providers.stack_guard import StackGuardProvider

__all__ = ["StackGuardProvider"]
