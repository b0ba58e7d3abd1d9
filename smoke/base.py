"""States of stacks made before 0.1.0 name the provider by this module."""

from bezel_smoke.base import SmokeProvider

__all__ = ["SmokeProvider"]
