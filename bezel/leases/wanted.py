"""Desired state of a lease, and the time limit of each step towards it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.leases.requests import LeaseSpec

DELETE_SECONDS = 3600.0


class Goal(StrEnum):
    """The final state to reach."""

    STORED = "stored"
    HEALTHY = "healthy"
    GONE = "gone"


@dataclass(frozen=True)
class Wanted:
    """Desired state, and the time limit of each step (platform seconds).

    Attributes:
        spec: The lease.
        goal: The final state to reach.
        may_ask: Whether a lease may be bought where none is left.
        provisioning_seconds: From PROVISIONING to ACTIVE.
        boot_seconds: From ACTIVE to a server that responds.
        delete_seconds: From the first attempt until it is gone.
        hourly_usd: Zone -> price of an hour, None where unknown.
        current: Id of the lease that serves already, "" without a record.
    """

    spec: LeaseSpec
    goal: Goal
    may_ask: bool = True
    provisioning_seconds: float = 1800.0
    boot_seconds: float = 3600.0
    delete_seconds: float = DELETE_SECONDS
    hourly_usd: Mapping[str, float | None] = field(default_factory=dict)
    current: str = ""
