"""Address ranges of a stack's subnetworks: a fixed table, so no region's range depends on another.

A range must not change when a region joins or leaves a stack's list of zones: a subnetwork that shrinks or moves is
made anew, with everything in it. With a hash of the region's name two regions could collide, and which of them moves
would depend on the list. So each region has its own place in a table that only grows.

Owns 10.64.0.0/12, which overlaps neither Google's automatic subnetworks (10.128.0.0/9) nor the default Docker bridge
(172.17.0.0/16). Every stack has a network of its own, so stacks may use the same ranges.
"""

import ipaddress

BLOCK = ipaddress.IPv4Network("10.64.0.0/12")
_NODE_PREFIX = 20  # 4,092 machines of a region
_RESERVED = 4  # addresses of each range that Google keeps
_SMALLEST = 8  # addresses of the smallest range of a subnetwork
_SMALL_PREFIX = 24
MOST_MACHINES = 62
"""Most machines of a small range. A range of N addresses begins at address N of its /24, so the largest has 128."""
_GATEWAY_PREFIX = 24  # Cloud Run needs /26 at least, and holds up to twice as many addresses as it has instances

# Add only at the end: a region's index is its range. Source: Google Cloud's list of locations, 2026-11.
# fmt: off
REGIONS = (
    "us-east5", "europe-west4", "southamerica-west1", "asia-northeast1", "us-central1", "us-east1", "us-east4",
    "us-south1", "us-west1", "us-west2", "us-west3", "us-west4", "europe-west1", "europe-west2", "europe-west3",
    "europe-west6", "europe-west8", "europe-west9", "europe-west10", "europe-west12", "europe-north1",
    "europe-north2", "europe-central2", "europe-southwest1", "asia-east1", "asia-east2", "asia-northeast2",
    "asia-northeast3", "asia-south1", "asia-south2", "asia-southeast1", "asia-southeast2", "asia-southeast3",
    "australia-southeast1", "australia-southeast2", "northamerica-northeast1", "northamerica-northeast2",
    "northamerica-south1", "southamerica-east1", "africa-south1", "me-central1", "me-central2", "me-west1",
)
# fmt: on


class NoRangeError(ValueError):
    """A region without a place in the table."""


def node_range(region: str) -> str:
    """The range of the subnetwork of a region's nodes, e.g. "10.64.0.0/20".

    Raises:
        NoRangeError: The region is not in the table.
    """
    return str(_part(region, 0))


def small_range(region: str, machines: int) -> str:
    """The smallest range of a subnetwork that holds so many machines and as many successors, e.g. "10.64.31.8/29".

    An address may stay taken for a while after its machine is deleted. Ranges of different sizes do not overlap, so a
    stack whose machines become more or fewer can have both until it has moved.

    Args:
        region: The region.
        machines: Most machines there at a time, 1 to `MOST_MACHINES`.

    Raises:
        NoRangeError: The region is not in the table.
    """
    *_, last = _part(region, 1).subnets(new_prefix=_SMALL_PREFIX)
    size = max(_SMALLEST, 1 << (2 * machines + _RESERVED - 1).bit_length())
    return str(ipaddress.IPv4Network((last.network_address + size, 33 - size.bit_length())))


def usable_addresses(ip_range: str) -> tuple[str, ...]:
    """Addresses of a range that Google gives to machines: all but the first two and the last two.

    Source: Google Cloud's documentation of subnets, "unusable addresses in IPv4 subnet ranges", 2026-11.
    """
    addresses = [str(address) for address in ipaddress.IPv4Network(ip_range)]
    return tuple(addresses[2:-2])


def gateway_range(region: str) -> str:
    """The range of the subnetwork of a gateway in this region, e.g. "10.64.16.0/24".

    Raises:
        NoRangeError: The region is not in the table.
    """
    return str(next(_part(region, 1).subnets(new_prefix=_GATEWAY_PREFIX)))


def _part(region: str, half: int) -> ipaddress.IPv4Network:
    if region not in REGIONS:
        raise NoRangeError(
            f"region {region!r} has no range of addresses, so its subnetwork could overlap another one.\n"
            "   Repair: correct the region's name; add a region that is new at Google at the end of REGIONS in "
            "components/bezel_components/config/subnet_ranges.py."
        )
    size = 2 ** (32 - _NODE_PREFIX)
    first = BLOCK.network_address + (2 * REGIONS.index(region) + half) * size
    return ipaddress.IPv4Network((first, _NODE_PREFIX))
