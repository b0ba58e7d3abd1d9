"""localcloud for the tests of its package: as a process, and in theirs."""

from hypothesis import HealthCheck, settings

from localcloud_support.fixtures import (
    cloud,
    daemon_forks,
    endpoint,
    own_daemon,
    project,
    served_port,
    started_daemon,
)

__all__ = ["cloud", "daemon_forks", "endpoint", "own_daemon", "project", "served_port", "started_daemon"]

# How long an example takes says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
