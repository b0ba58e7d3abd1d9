"""Servers of a comparison: running ones, or one that is started anew for each turn.

Owns when a server is reached, and the cost of all servers together. Leaves out the command that starts one
(`bezel_bench.commands.measure.server_process`).
"""

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bezel_base.terminal.status_line import StatusLine
from bezel_bench.commands.measure.cell_runner import Variant, variant_of
from bezel_bench.commands.measure.server_process import StartedServer
from bezel_bench.commands.measure.target import reach
from bezel_bench.commands.targets import Targets
from bezel_bench.sweep.cell_request import CellRequest


class Variants(NamedTuple):
    """The servers of a comparison.

    Attributes:
        usd_per_hour: Price of all servers up during the comparison; None where one of them has no known price.
        ready: Returns the server of a cell, ready for requests.
        end: Ends every server that was started here.
        running: The running servers, each with the options that name it; {} where each turn starts one.
    """

    usd_per_hour: float | None
    ready: Callable[[CellRequest], Variant]
    end: Callable[[], None]
    running: Mapping[str, tuple[argparse.Namespace, Variant]]


def variants_of(
    targets: Targets, options: argparse.Namespace, servers: Mapping[str, str], request: CellRequest, show: StatusLine
) -> Variants:
    """The variants that the options name.

    Args:
        targets: Targets of the stacks.
        options: `arm`, or `start` and `url`.
        servers: Each variant's name with its URL, stack or value.
        request: Any cell.
        show: Takes progress messages.

    Raises:
        UserError: A server that should be running cannot be reached.
    """
    title = f"comparison of {', '.join(servers)}"
    if options.arm:
        running = {}
        for name, server in servers.items():
            address = {"url": server, "stack": None} if "://" in server else {"url": None, "stack": server}
            of_server = argparse.Namespace(**{**vars(options), **address})
            running[name] = of_server, variant_of(targets, of_server, reach(targets, of_server), request, title, show)
        prices = [variant.server.manifest.price.usd_per_hour for _, variant in running.values()]
        stated_prices = [price for price in prices if price is not None]
        total = sum(stated_prices) if len(stated_prices) == len(prices) else None
        return Variants(total, lambda cell: running[cell.variant][1], lambda: None, running)
    server_process = StartedServer(options.start, options.url, options.start_seconds, show)

    def restart(cell: CellRequest) -> Variant:
        key, _, value = cell.variant.partition("=")
        server_process.restart(key, value, cell.deadline_seconds)
        return variant_of(targets, options, reach(targets, options), cell, title, show)

    return Variants(options.usd_per_hour, restart, server_process.end, {})
