"""The wanted state of a lease, and how long each step towards it may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.leases.requests import LeaseSpec

DELETE_SECONDS = 3600.0


class Goal(StrEnum):
    """What is wanted in the end."""

    STORED = "stored"
    HEALTHY = "healthy"
    GONE = "gone"


@dataclass(frozen=True)
class Wanted:
    """What is wanted, and how long each part of it may take (platform seconds).

    Attributes:
        spec: The lease.
        goal: What to end with.
        may_ask: Whether a lease may be bought where none is left.
        provisioning_seconds: From PROVISIONING to ACTIVE.
        boot_seconds: From ACTIVE to a server that answers.
        delete_seconds: From the first attempt to its being gone.
        hourly_usd: Zone -> price of an hour, None where unknown.
        current: Id of the lease that serves already, "" where none was recorded.
    """

    spec: LeaseSpec
    goal: Goal
    may_ask: bool = True
    provisioning_seconds: float = 1800.0
    boot_seconds: float = 3600.0
    delete_seconds: float = DELETE_SECONDS
    hourly_usd: Mapping[str, float | None] = field(default_factory=dict)
    current: str = ""
