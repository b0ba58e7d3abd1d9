"""States of stacks made before 0.1.0 name the provider by this module."""

from bezel_smoke.health import HealthCheckProvider

__all__ = ["HealthCheckProvider"]
