"""Options of `bezel tpu`, apart from the code that runs it, so that no other command imports that code."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.cli.argparser import Parser

    Parsers = argparse._SubParsersAction[Parser]  # noqa: SLF001 - it has no public name

HELP = "leases of TPUs and of machines with GPUs: found, listed, described, deleted, swept"


def add_arguments(commands: "Parsers") -> None:
    """The subcommands with their options."""
    parser = commands.add_parser("tpu", help=HELP, description=HELP)
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    find = actions.add_parser("find", help="each zone: hardware, quota, price, and with --probe capacity")
    find.add_argument("stack", help="whose hardware and model are looked for")
    find.add_argument("--probe", action="store_true", help="ask for a real lease in each zone, given back at once")
    find.add_argument("--wait", default="2m", metavar="TIME", help="how long a probe waits for capacity (default: 2m)")
    _common(find)
    listed = actions.add_parser("list", help="every lease that a stack of ours asked for")
    _common(listed)
    for name, about in (
        ("describe", "all that is known of one: its boot, the end of its console"),
        ("delete", "give one back, and see it gone"),
    ):
        one = actions.add_parser(name, help=about)
        one.add_argument("name", help="of the lease, as `list` shows it")
        _common(one)
    sweep = actions.add_parser(
        "sweep", help="what failed or is over and still uses quota: listed, then deleted; nothing without our labels"
    )
    sweep.add_argument(
        "--of-stack", action="append", default=[], metavar="STACK", help="and everything of this stack; may be repeated"
    )
    _common(sweep)
    for action in ("delete", "sweep"):
        actions.choices[action].add_argument("--yes", action="store_true", help="do not ask")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", help="Google Cloud project (default: that of the environment)")
    parser.add_argument(
        "--zone", action="append", default=[], help="look there only; may be repeated (default: every zone known)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
