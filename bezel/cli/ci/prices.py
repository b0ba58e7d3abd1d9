"""`bezel ci prices`: refreshes the catalogue's prices by a pull request; with --dry-run, prints what it would hold."""

import argparse
import dataclasses
import os
from datetime import UTC, datetime
from typing import Literal

from bezel.cli.catalog.commands import check_prices, compare_with_list
from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.engine.project.project import Project
from bezel.gitops.changed.git_trees import checked_git
from bezel.gitops.prices.price_update import PriceUpdate
from bezel.gitops.prices.pull_request import base_branch, forge_for, send
from bezel.gitops.prices.stack_effects import PRICE_FILE, effects
from bezel.rest import endpoint
from bezel_catalog.prices import format_prices, parse_prices
from bezel_catalog.refresh import refreshed_rows

_VARIABLE = "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT"


def run(project: Project, options: argparse.Namespace) -> Literal[Exit.DONE]:
    """Open or update the pull request, and return the exit code.

    Raises:
        UserError: The price list could not be read completely, the new rows break a rule, the forge is unknown, or the
            folder is no checkout with a catalogue.
    """
    forge = None if options.dry_run else forge_for(os.environ)
    base = "" if forge is None else base_branch(options.into, os.environ)
    rows = parse_prices(checked_git(project.folder, "show", f"HEAD:./{PRICE_FILE}"))
    month = f"{datetime.now(UTC):%Y-%m}"
    address = endpoint("CLOUD_BILLING") if os.environ.get(_VARIABLE) else ""
    update = PriceUpdate(month, compare_with_list(rows, month), address, dry_run=forge is None)
    new = refreshed_rows(update.compared)
    check_prices(new)
    if update.is_needed:
        content = format_prices(new)
        update = dataclasses.replace(update, stacks=effects(project.folder, content))
        if forge is not None:
            with forge:
                update = dataclasses.replace(update, pull_request=send(forge, update, content, base))
    publish(update, options)
    return Exit.DONE
