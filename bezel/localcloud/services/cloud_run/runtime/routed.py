"""Route of a request: the instances of one revision."""

from dataclasses import dataclass

from bezel.localcloud.core.logbook import LogSource
from bezel.localcloud.services.cloud_run.runtime.autoscaler import Autoscaler
from bezel.localcloud.services.cloud_run.spec import RevisionSpec


@dataclass(frozen=True)
class RevisionRoute:
    """Route of a request."""

    pool: Autoscaler
    spec: RevisionSpec
    source: LogSource
