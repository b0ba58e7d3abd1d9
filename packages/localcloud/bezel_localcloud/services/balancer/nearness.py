"""Distance of regions from a client's place, by which a balancer chooses the nearest. Pure.

Google routes by its network and not by the map. The coordinates are those of the places that Google names for its
regions, to a degree; source: its list of locations, 2026-11.
"""

import math
from collections.abc import Iterable

_PLACES = """
africa-south1 -26 28|asia-east1 24 121|asia-east2 22 114|asia-northeast1 36 140|asia-northeast2 35 136
asia-northeast3 38 127|asia-south1 19 73|asia-south2 29 77|asia-southeast1 1 104|asia-southeast2 -6 107
asia-southeast3 14 101|australia-southeast1 -34 151|australia-southeast2 -38 145|europe-central2 52 21
europe-north1 61 27|europe-north2 59 18|europe-southwest1 40 -4|europe-west1 50 4|europe-west2 52 0
europe-west3 50 9|europe-west4 53 7|europe-west6 47 9|europe-west8 45 9|europe-west9 49 2|europe-west10 53 13
europe-west12 45 8|me-central1 25 51|me-central2 26 50|me-west1 32 35|northamerica-northeast1 46 -74
northamerica-northeast2 44 -79|northamerica-south1 21 -100|southamerica-east1 -24 -47|southamerica-west1 -33 -71
us-central1 41 -96|us-east1 33 -80|us-east4 39 -77|us-east5 40 -83|us-south1 33 -97|us-west1 46 -121
us-west2 34 -118|us-west3 41 -112|us-west4 36 -115
"""
PLACES: dict[str, tuple[float, float]] = {
    name: (float(latitude), float(longitude))
    for name, latitude, longitude in (row.split() for row in _PLACES.strip().replace("\n", "|").split("|"))
}
# A client in a part of the world is where this region is.
AREAS = {
    "africa": "africa-south1",
    "asia": "asia-southeast1",
    "australia": "australia-southeast1",
    "europe": "europe-west3",
    "me": "me-central1",
    "northamerica": "northamerica-northeast2",
    "southamerica": "southamerica-east1",
    "us": "us-central1",
}
USUAL = "us"
"""Where clients are without a setting."""


def is_place(name: str) -> bool:
    """Whether a name is a region or a part of the world."""
    return name in AREAS or name in PLACES


def nearest_first(regions: Iterable[str], place: str) -> list[str]:
    """Regions by their distance from a place, a region or a part of the world; equal ones by name."""
    here = PLACES[AREAS.get(place, place)]
    return sorted(regions, key=lambda region: (_radians(here, PLACES[region]), region))


def _radians(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The angle between two places, seen from the Earth's centre."""
    (latitude, longitude), (latitude_2, longitude_2) = (tuple(map(math.radians, place)) for place in (one, other))
    cosine = math.sin(latitude) * math.sin(latitude_2)
    cosine += math.cos(latitude) * math.cos(latitude_2) * math.cos(longitude - longitude_2)
    return math.acos(max(-1.0, min(1.0, cosine)))
