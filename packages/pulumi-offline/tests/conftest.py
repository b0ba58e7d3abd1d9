"""Fixtures of the stand-ins; and Hypothesis without a deadline, as an example's time says how busy the machine is."""

from hypothesis import HealthCheck, settings

from pulumi_offline_support.fixtures import gcp, google

__all__ = ["gcp", "google"]

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
