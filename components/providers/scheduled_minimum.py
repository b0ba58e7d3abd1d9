"""States of stacks made before 0.1.0 name the provider by this module."""

from bezel_components.providers.scheduled_minimum import ScheduledMinimumProvider

__all__ = ["ScheduledMinimumProvider"]
