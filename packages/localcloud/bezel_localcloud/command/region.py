"""`region`: where the clients of load balancers are, where the balancers listen, and which regions they use.

Leaves out the balancers themselves (`bezel_localcloud.services.balancer`); the daemon shows and moves them.
"""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from bezel_base.errors import Problem, WrongValueError
from bezel_base.terminal.blocks import Block, Line, NamedValues
from bezel_base.terminal.screen import show
from bezel_localcloud import control_client
from bezel_localcloud.command.cloud import LocalCloud
from bezel_localcloud.command.program import Program
from bezel_localcloud.services.balancer.nearness import AREAS, is_place


def run(program: Program, options: argparse.Namespace) -> int:
    """Move the clients to a place if one is named, and show the balancers; return the exit code.

    Raises:
        WrongValueError: There is no such place.
        UserError: localcloud does not run, or does not respond.
    """
    if options.place and not is_place(options.place):
        repair = f"name a region, e.g. europe-west4, or one of {', '.join(AREAS)}."
        consequence = "is neither a region nor a part of the world, so no client was moved."
        raise WrongValueError(Problem("place", options.place, consequence, repair))
    endpoint = LocalCloud.of(program, options).running()
    shown = (
        control_client.move_clients(endpoint, options.place) if options.place else control_client.balancers(endpoint)
    )
    show([*_blocks(shown)])
    return 0


def _blocks(shown: Mapping[str, Any]) -> Iterator[Block]:
    yield Line(f"clients of load balancers are in {shown['place']}")
    if not shown["balancers"]:
        yield Line("there is no load balancer: make a global forwarding rule, e.g. by a stack with `address`.")
    for balancer in shown["balancers"]:
        url = f"{balancer['scheme']}://{balancer['address']}:{balancer['port']}"
        rows = [("listens at", balancer["at"])]
        if balancer["domains"]:
            rows += [("domains", ", ".join(balancer["domains"]))]
        if balancer["scheme"] == "https":
            rows += [("authority", f"{shown['authority']}, which clients trust (SSL_CERT_FILE)")]
        for service, regions in balancer["regions"].items():
            used = ", ".join(f"{region} {_share(share)}" for region, share in sorted(regions.items()))
            rows += [(service, used or "no region")]
        yield Line(url)
        yield NamedValues(rows, indent=4)


def _share(share: float) -> str:
    """The state of a region by the share of the traffic that it may get."""
    if not share:
        return "out of use"
    return "in use" if share >= 1 else f"coming back, {share:.0%} of its traffic"
