"""`bezel catalog check|refresh`: checks the catalogue's rules, and compares its prices with the live list.

Owns what is printed, the requests to the Cloud Billing Catalog, and the writing of the price file. Leaves the rules to
bezel_catalog: the SKU of each price (`skus`), the differences (`refresh`), the integrity rules (`checks`).
"""

import argparse
import dataclasses
import os
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bezel.rest import GoogleClient, RestError, endpoint
from bezel_base.atomic_write import write_whole
from bezel_base.console import note
from bezel_base.errors import Problem, UserError
from bezel_catalog.checks.integrity import check_catalogue, read_catalogue
from bezel_catalog.checks.prices import unpriced_places
from bezel_catalog.prices import PRICES, Price, format_prices, parse_prices
from bezel_catalog.refresh import Compared, Matches, Outcome, SkuCollector, compare, refreshed_rows, regions_to_refresh
from bezel_catalog.skus import sku_rules

PAGE = 5000  # the largest page that the API returns; it has no filter for SKUs


def check(_: argparse.Namespace) -> Literal[0]:
    """Print a summary of the data files; return the exit code.

    Raises:
        UserError: The files break rules; holds every integrity error.
    """
    catalogue = read_catalogue()
    if errors := check_catalogue(catalogue):
        raise UserError(*errors, title="The catalogue is inconsistent")
    records = [*catalogue.accelerators.values(), *catalogue.tpus.values(), *catalogue.models.values()]
    records += [*catalogue.machines.values(), *catalogue.vllm.values()]
    derived = sum(row.is_derived for row in catalogue.prices)
    sys.stdout.write(
        f"The catalogue is consistent: {len(records)} records and {len(catalogue.prices)} prices, {derived} of them "
        f"derived; the oldest price is of {min(row.as_of for row in catalogue.prices)}.\n"
    )
    if places := unpriced_places(catalogue.prices, catalogue.accelerators, catalogue.tpus):
        sys.stdout.write(f"Offered but unpriced, so that a stack there is refused: {', '.join(places)}.\n")
    return 0


def run_refresh(options: argparse.Namespace) -> int:
    """Refresh the catalogue's own price file; return the exit code."""
    return refresh(write=options.write)


def refresh(*, write: bool, file: Path = PRICES, month: str | None = None, client: GoogleClient | None = None) -> int:
    """Compare the price file with the Cloud Billing Catalog, print the differences, and write them on request.

    Args:
        write: Write the differences to the file, if it then passes every check.
        file: The price file.
        month: Month of the reading, e.g. "2026-11"; the current one by default.
        client: Client for the requests; one with the environment's credentials by default.

    Returns:
        The exit code.

    Raises:
        UserError: The list could not be read completely, or the file not written, or it would not pass the checks; the
            file is unchanged.
    """
    text = _text(file)
    rows = parse_prices(text)
    compared = compare_with_list(rows, month or f"{datetime.now(UTC):%Y-%m}", client)
    sys.stdout.write("\n".join(_differences(compared)) + "\n")
    new = refreshed_rows(compared)
    check_prices(new)
    if new == rows:
        sys.stdout.write(f"{file.name} agrees with the list: nothing to write.\n")
    elif write:
        if _text(file) != text:
            consequence = "it was changed while the list was read, so it is not written."
            raise UserError(Problem(file.name, None, consequence, "run the command again."))
        try:
            write_whole(file, format_prices(new), mode=file.stat().st_mode)
        except OSError as error:
            consequence = f"it cannot be written: {error}; it is unchanged."
            raise UserError(Problem(file.name, None, consequence, "make the file writable.")) from error
        sys.stdout.write(f"{file.name} is written.\n")
    else:
        sys.stdout.write("Nothing is written: `bezel catalog refresh --write` writes these changes.\n")
    return 0


def compare_with_list(rows: Sequence[Price], month: str, client: GoogleClient | None = None) -> tuple[Compared, ...]:
    """Compare price rows with the whole Cloud Billing Catalog.

    Args:
        rows: The price file's rows.
        month: Month of the reading, e.g. "2026-11".
        client: Client for the requests; one with the environment's credentials by default.

    Raises:
        UserError: The list could not be read completely.
    """
    if os.environ.get("GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT"):
        note(f"the prices are those of {endpoint('CLOUD_BILLING')}, not Google's: a rehearsal")
    try:
        with client or GoogleClient() as used:
            return _comparisons(rows, used, month)
    except RestError as error:
        raise UserError(f"the price list could not be read completely, so nothing was compared: {error}") from error


def check_prices(rows: tuple[Price, ...]) -> None:
    """Check price rows together with the rest of the catalogue.

    Raises:
        UserError: They break a rule of it; holds every integrity error.
    """
    if errors := check_catalogue(dataclasses.replace(read_catalogue(), prices=rows)):
        raise UserError(*errors, title="The price file would be inconsistent, so it is not written")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(Problem(file.name, None, f"it cannot be read: {error}.", "make the file readable.")) from error


def _comparisons(rows: Sequence[Price], client: GoogleClient, month: str) -> tuple[Compared, ...]:
    """Read every page of every billing service, then compare.

    Raises:
        UserError: A service has no SKU at all.
        RestError: A page could not be read.
    """
    rules, regions = sku_rules(), regions_to_refresh(rows)
    matches: Matches = {}
    for service in sorted({rule.billing_service for rule in rules}):
        collector = SkuCollector([rule for rule in rules if rule.billing_service == service], regions)
        address = f"{endpoint('CLOUD_BILLING')}services/{service}/skus"
        note(f"reading the price list of service {service}")
        for sku in client.pages(address, "skus", params={"pageSize": PAGE, "currencyCode": "USD"}):
            collector.add(sku)
        if not collector.count:
            consequence = "the Cloud Billing Catalog lists no SKU of this service, so nothing was compared."
            repair = "correct billing_service in skus.toml, or check that these credentials may read the service."
            raise UserError(Problem("billing_service", service, consequence, repair))
        matches |= collector.matches
    return compare(rows, rules, matches, as_of=month)


def _differences(compared: Sequence[Compared]) -> list[str]:
    """Text of the differences: each row that is not simply confirmed, then the counts."""
    lines = []
    for row in compared:
        old, new = row.old, row.row
        text = ""
        if row.outcome in ("changed", "new") and new:
            before = f"{old.usd_per_unit:f} -> " if row.outcome == "changed" and old else ""
            text = f"{before}{new.usd_per_unit:f} USD per {new.unit} (SKU {new.sku})"
        elif row.outcome == "confirmed" and old and old.is_derived:
            text = "was derived, now read at the same price"
        elif row.outcome in ("not found", "refused"):
            text = f"{row.why}; {'the row is unchanged' if old else 'no row is added'}"
        if text:
            lines.append(f"{row.outcome:9s}  {row.name}: {text}")
    counts = Counter(row.outcome for row in compared)
    order: tuple[Outcome, ...] = ("confirmed", "changed", "new", "not found", "refused")
    return [*lines, ", ".join(f"{counts[outcome]} {outcome}" for outcome in order) + "."]
