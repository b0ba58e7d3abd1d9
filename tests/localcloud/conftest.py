"""localcloud as a process, as the tests of its package have it."""

from localcloud_support.fixtures import cloud, endpoint, own_daemon

__all__ = ["cloud", "endpoint", "own_daemon"]
