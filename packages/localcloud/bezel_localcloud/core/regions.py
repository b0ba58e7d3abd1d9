"""Google Cloud's regions, for the APIs whose resources have a location. Source: its list of locations, 2026-11."""

_REGIONS = """
africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
asia-southeast1 asia-southeast2 asia-southeast3 australia-southeast1 australia-southeast2 europe-central2 europe-north1
europe-north2 europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8
europe-west9 europe-west10 europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1
northamerica-northeast2 northamerica-south1 southamerica-east1 southamerica-west1 us-central1 us-east1 us-east4 us-east5
us-south1 us-west1 us-west2 us-west3 us-west4
"""


# Zones whose letters are not a, b and c. Source: Compute Engine's page on regions and zones, November 2026.
_LETTERS = {"us-central1": "abcf", "us-east1": "bcd", "europe-west1": "bcd"}


def zones(region: str) -> list[str]:
    """Names of the zones of a region."""
    return [f"{region}-{letter}" for letter in _LETTERS.get(region, "abc")]


def region_of_zone(zone: str) -> str:
    """The region of a zone, "" for an unknown zone."""
    region = zone.rpartition("-")[0]
    return region if region in regions() and zone in zones(region) else ""


def regions() -> frozenset[str]:
    """Names of all regions."""
    return frozenset(_REGIONS.split())
