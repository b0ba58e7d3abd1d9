"""Route of a request: the instances of one revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.localcloud.core.logbook import LogSource
    from bezel.localcloud.services.cloud_run.runtime.autoscaler import Autoscaler
    from bezel.localcloud.services.cloud_run.spec import RevisionSpec


@dataclass(frozen=True)
class RevisionRoute:
    """Route of a request."""

    pool: Autoscaler
    spec: RevisionSpec
    source: LogSource
