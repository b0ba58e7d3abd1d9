"""State of stacks made before 0.1.0 names its provider by this module. To be removed with 0.1.0."""

from components.providers.traffic_switch import TrafficSwitchProvider

__all__ = ["TrafficSwitchProvider"]
