"""Cost of the load balancers in a list of resources: forwarding rules, addresses without a use, data by the GiB.

Owns which types count. An address that a rule has costs nothing in addition; a rule with an address that is not known
yet may have one of the program's. Data has a price a GiB in each direction, of the regions that process it; how much
there will be is not in the resources, so it is no part of the sums: a limit has to state it. Endpoints of Private
Service Connect are left out, and so is the transfer to the internet.

Facts: price page of Cloud Load Balancing (`bezel_catalog.load_balancing`), November 2026.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address

from bezel.planner.base.money import Amount, Priced, Unpriced, most_expensive, times, total
from bezel.planner.cost.service_cost import HOURS_PER_MONTH, CostLine
from bezel.resource_cost.inputs import Inputs
from bezel_catalog.load_balancing import (
    DATA_IN,
    DATA_OUT,
    EVERYWHERE,
    FIRST_RULES,
    FURTHER_RULE,
    UNUSED_ADDRESS,
    load_balancing_price,
)

GLOBAL_RULE = "gcp:compute/globalForwardingRule:GlobalForwardingRule"
REGIONAL_RULE = "gcp:compute/forwardingRule:ForwardingRule"
ADDRESSES = ("gcp:compute/globalAddress:GlobalAddress", "gcp:compute/address:Address")
ENDPOINT_GROUP = "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup"
DATA = "the data through the load balancer"
"""Reason of a cost that is unknown because nothing states how much data there will be."""
_AT_ONE_PRICE = 5  # global forwarding rules that cost one price together


@dataclass(frozen=True, slots=True)
class LoadBalancers:
    """The load balancers of a list of resources, in USD.

    Attributes:
        count: number of forwarding rules and of addresses without a use.
        rules: number of forwarding rules among them.
        hourly: what they cost without traffic.
        gib: a GiB in one direction, in the most expensive region; unknown for a reason.
    """

    count: int
    rules: int
    hourly: Amount
    gib: Amount

    @property
    def monthly(self) -> Amount:
        """The same of a month."""
        return times(self.hourly, HOURS_PER_MONTH)

    def data_monthly(self, gib: Decimal | None) -> Amount:
        """The data of a month with so many GiB in both directions together; unknown where their number is."""
        if not self.rules:
            return Priced(Decimal(0))
        return Unpriced(DATA) if gib is None else times(self.gib, gib)


def is_part(token: str) -> bool:
    """Whether resources of a type are counted here."""
    return token in {GLOBAL_RULE, REGIONAL_RULE, *ADDRESSES}


def endpoint_regions(resources: Iterable[tuple[str, Inputs]]) -> set[str]:
    """Regions of the endpoint groups among resources."""
    return {_word(inputs, "region").rpartition("/")[2] for token, inputs in resources if token == ENDPOINT_GROUP} - {""}


def load_balancers(resources: Iterable[tuple[str, Inputs]], regions: Iterable[str]) -> LoadBalancers | None:
    """The load balancers among resources; None where there are none.

    Args:
        resources: type and inputs of each.
        regions: regions of the program's endpoint groups, which process the data of global rules.

    Raises:
        InputError: an input that the cost depends on cannot be read.
    """
    pairs = list(resources)
    rules = [(token, inputs) for token, inputs in pairs if token in {GLOBAL_RULE, REGIONAL_RULE} and _is_billed(inputs)]
    globals_ = [inputs for token, inputs in rules if token == GLOBAL_RULE]
    rule_regions = [_region(inputs) for token, inputs in rules if token == REGIONAL_RULE]
    unused = _count_unused([inputs for token, inputs in pairs if token in ADDRESSES], [inputs for _, inputs in rules])
    if not rules and not unused:
        return None
    lines = [*_rule_lines(len(globals_), EVERYWHERE)]
    for region in sorted(set(rule_regions)):
        lines += _rule_lines(rule_regions.count(region), region)
    if unused:
        lines.append(CostLine(UNUSED_ADDRESS, unused, load_balancing_price(UNUSED_ADDRESS)))
    processed = sorted({*rule_regions, *(regions if globals_ else ())})
    prices = [
        CostLine(item, 1, load_balancing_price(item, region)).hourly
        for region in processed
        for item in (DATA_IN, DATA_OUT)
    ]
    gib = most_expensive(prices) if prices else Unpriced("the region that processes the data of the load balancer")
    return LoadBalancers(len(rules) + unused, len(rules), total(line.hourly for line in lines), gib)


def _rule_lines(count: int, region: str) -> list[CostLine]:
    first = [CostLine(FIRST_RULES, 1, load_balancing_price(FIRST_RULES, region))] if count else []
    further = max(0, count - _AT_ONE_PRICE)
    return [*first, *([CostLine(FURTHER_RULE, further, load_balancing_price(FURTHER_RULE, region))] if further else [])]


def _is_billed(rule: Inputs) -> bool:
    """Whether a rule is one of a load balancer, and no endpoint of Private Service Connect."""
    return rule.is_unknown("loadBalancingScheme") or rule.get("loadBalancingScheme") != ""


def _region(inputs: Inputs) -> str:
    region = inputs.required_text("a rule without a region has no price.", "write its region.", "region")
    return region.rpartition("/")[2]


def _count_unused(addresses: list[Inputs], rules: list[Inputs]) -> int:
    """Number of external IPv4 addresses that no rule has; at least, where a rule's address is not known."""
    external = [address for address in addresses if _is_external(address)]
    named = [_word(rule, "ipAddress").rpartition("/")[2] for rule in rules]
    spare = [
        address
        for address in external
        if not {_word(address, "name"), _word(address, "address")} & {*filter(None, named)}
    ]
    # A state has the IP itself in a rule, which an address has among its outputs only.
    return max(0, len(spare) - sum(not word or _is_ip(word) for word in named if word not in _declared_ips(external)))


def _declared_ips(addresses: list[Inputs]) -> set[str]:
    """IPs that addresses declare."""
    return {_word(address, "address") for address in addresses} - {""}


def _is_ip(word: str) -> bool:
    try:
        ip_address(word)
    except ValueError:
        return False
    return True


def _is_external(address: Inputs) -> bool:
    kind, version = _word(address, "addressType"), _word(address, "ipVersion")
    return kind != "INTERNAL" and version != "IPV6"


def _word(inputs: Inputs, key: str) -> str:
    """A text; "" where it is not written or not known."""
    return "" if inputs.is_unknown(key) else inputs.text(key) or ""
