"""State of the backend services: which of their regions get requests, by health, ejection and drains.

Owns what outlives a change of the resources. Leaves out the rules (outliers.py, region_choice.py, nearness.py).
"""

import random

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.balancer.nearness import USUAL, nearest_first
from bezel_localcloud.services.balancer.outliers import Outliers, OutlierSettings
from bezel_localcloud.services.balancer.region_choice import HealthRecord, choose
from bezel_localcloud.services.load_balancing.routes import Backend, Region

_PLACE = "balancer client place"  # a setting


def service_name(region: str, service: str) -> str:
    """Full name of a Cloud Run service of this project."""
    return f"projects/{PROJECT}/locations/{region}/services/{service}"


class BackendState:
    """The regions of one backend service."""

    def __init__(self, cloud: Context, backends: "Backends") -> None:
        self._cloud, self._backends, self._chance = cloud, backends, backends.chance
        self._outliers: Outliers | None = None
        self._health: dict[str, HealthRecord] = {}

    def choose(self, backend: Backend) -> Region | None:
        """The region of the next request; None while none is in use."""
        regions = {region.name: region for region in backend.regions}
        order = nearest_first(regions, self._backends.place)
        shares = self.shares(backend)
        return regions.get(choose(order, shares, self._chance))

    def shares(self, backend: Backend) -> dict[str, float]:
        """Region -> share of the traffic that it may get."""
        now, outliers = self._now(), self._find_outliers(backend.row)
        ejected = outliers.ejected_regions(now) if outliers else frozenset()
        services = self._cloud.services
        shares = {}
        for region in backend.regions:
            ready = services.readiness(service_name(region.name, region.service)) if region.service else None
            share = self._health.setdefault(region.name, HealthRecord()).observe(ready, now)
            is_out = region.name in ejected or not region.capacity or services.is_drained(region.name)
            shares[region.name] = 0.0 if is_out else share
        return shares

    def report(self, backend: Backend, region: str, status: int) -> None:
        """Note an answer of a region."""
        if outliers := self._find_outliers(backend.row):
            outliers.report(region, status, self._now(), len(backend.regions))

    def _find_outliers(self, row: Json) -> Outliers | None:
        settings = OutlierSettings.of(row)
        if settings is None:
            self._outliers = None
        elif self._outliers is None:
            self._outliers = Outliers(settings, self._chance)
        else:
            self._outliers.settings = settings
        return self._outliers

    def _now(self) -> float:
        return self._cloud.pace.now() * self._cloud.pace.speed


class Backends:
    """The state of every backend service, by its name.

    Attributes:
        place: Where clients are taken to be.
        chance: Returns a number in [0, 1).
    """

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self.place = cloud.store.setting(_PLACE) or USUAL
        self._states: dict[str, BackendState] = {}
        self.chance = random.Random(1).random  # noqa: S311 - shares of traffic, the same in each run

    def move_clients(self, place: str) -> None:
        """Take clients to be in a region or a part of the world from now on, after a restart too."""
        self._cloud.store.set_setting(_PLACE, place)
        self.place = place

    def state(self, backend: Backend) -> BackendState:
        """The state of a backend service."""
        if backend.name not in self._states:
            self._states[backend.name] = BackendState(self._cloud, self)
        return self._states[backend.name]
