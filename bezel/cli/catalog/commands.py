"""`bezel catalog show|check|refresh`: prints the catalogue, checks its rules, compares its prices with the live list.

Owns what is printed, the requests to the Cloud Billing Catalog, and the writing of the price file. Leaves the rules to
bezel.catalog: the SKU of each price (`skus`), the differences (`refresh`), the integrity rules (`checks`).
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bezel.atomic_write import write_whole
from bezel.catalog.checks.integrity import check_catalogue, read_catalogue
from bezel.catalog.checks.prices import unpriced_places
from bezel.catalog.prices import PRICES, Price, format_prices, parse_prices
from bezel.catalog.refresh import Compared, Matches, Outcome, SkuCollector, compare, refreshed, regions_to_refresh
from bezel.catalog.skus import sku_rules
from bezel.cli.catalog.tables import SECTIONS, section
from bezel.errors import Problem, UserError
from bezel.rest import GoogleClient, RestError, endpoint

PAGE = 5000  # the largest page that the API returns; it has no filter for SKUs


class CatalogError(UserError):
    """The catalogue could not be read or compared; the text is for the user."""


def show(name: str | None) -> int:
    """Print one section, or all; return the exit code."""
    sys.stdout.write("\n\n".join(section(each) for each in ([name] if name else SECTIONS)) + "\n")
    return 0


def check() -> int:
    """Print every integrity error of the data files; return the exit code, 1 where there is one."""
    catalogue = read_catalogue()
    errors = check_catalogue(catalogue)
    if errors:
        sys.stderr.write(_listed(errors))
        return 1
    records = [*catalogue.accelerators.values(), *catalogue.tpus.values(), *catalogue.models.values()]
    records += [*catalogue.machines.values(), *catalogue.vllm.values()]
    derived = sum(row.derived for row in catalogue.prices)
    sys.stdout.write(
        f"The catalogue holds: {len(records)} records and {len(catalogue.prices)} prices, {derived} of them derived; "
        f"the oldest price is of {min(row.as_of for row in catalogue.prices)}.\n"
    )
    if places := unpriced_places(catalogue.prices, catalogue.accelerators, catalogue.tpus):
        sys.stdout.write(f"Offered but unpriced, so that a stack there is refused: {', '.join(places)}.\n")
    return 0


def refresh(*, write: bool, file: Path = PRICES, month: str | None = None, client: GoogleClient | None = None) -> int:
    """Compare the price file with the Cloud Billing Catalog, print the differences, and write them on request.

    Args:
        write: Write the differences to the file, if it then passes every check.
        file: The price file.
        month: Month of the reading, e.g. "2026-11"; the current one by default.
        client: Client for the requests; one with the environment's credentials by default.

    Returns:
        The exit code: 1 where the file would not pass the checks, and so was not written.

    Raises:
        CatalogError: The list could not be read completely, or the file not written; the file is unchanged.
    """
    text = _text(file)
    rows = parse_prices(text)
    try:
        with client or GoogleClient() as asked:
            compared = _compared(rows, asked, month or f"{datetime.now(UTC):%Y-%m}")
    except RestError as error:
        raise CatalogError(f"the price list could not be read whole, so nothing was compared: {error}") from error
    sys.stdout.write("\n".join(_told(compared)) + "\n")
    new = refreshed(compared)
    errors = check_catalogue(dataclasses.replace(read_catalogue(), prices=new))
    if errors:
        sys.stderr.write(f"Nothing is written, because the price file would then be wrong.\n{_listed(errors)}")
        return 1
    if new == rows:
        sys.stdout.write(f"{file.name} says the same: nothing to write.\n")
    elif write:
        if _text(file) != text:
            raise CatalogError(f"{file.name} was changed while the list was read: nothing is written. Run it again.")
        try:
            write_whole(file, format_prices(new), mode=file.stat().st_mode)
        except OSError as error:
            raise CatalogError(f"{file.name} cannot be written: {error}. It is as it was.") from error
        sys.stdout.write(f"{file.name} is written.\n")
    else:
        sys.stdout.write("Nothing is written: `bezel catalog refresh --write` takes this over.\n")
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"{file.name} cannot be read: {error}.") from error


def _compared(rows: Sequence[Price], client: GoogleClient, month: str) -> tuple[Compared, ...]:
    """Read every page of every billing service, then compare.

    Raises:
        CatalogError: A service has no SKU at all.
        RestError: A page could not be read.
    """
    rules, regions = sku_rules(), regions_to_refresh(rows)
    matches: Matches = {}
    for service in sorted({rule.billing_service for rule in rules}):
        collector = SkuCollector([rule for rule in rules if rule.billing_service == service], regions)
        address = f"{endpoint('CLOUD_BILLING')}services/{service}/skus"
        sys.stderr.write(f"reading the price list of service {service}\n")
        for sku in client.pages(address, "skus", params={"pageSize": PAGE, "currencyCode": "USD"}):
            collector.add(sku)
        if not collector.count:
            raise CatalogError(
                f"the Cloud Billing Catalog lists no SKU of service {service}: nothing was compared. Correct "
                "billing_service in skus.toml, or look whether these credentials may read it."
            )
        matches |= collector.matches
    return compare(rows, rules, matches, as_of=month)


def _told(compared: Sequence[Compared]) -> list[str]:
    """Text of the differences: each row that is not simply confirmed, then the counts."""
    lines = []
    for each in compared:
        if each.outcome == "changed" and each.old and each.row:
            lines.append(
                f"changed    {each.name}: {each.old.usd_per_unit:f} -> {each.row.usd_per_unit:f} "
                f"USD per {each.row.unit} (SKU {each.row.sku})"
            )
        elif each.outcome == "new" and each.row:
            lines.append(
                f"new        {each.name}: {each.row.usd_per_unit:f} USD per {each.row.unit} (SKU {each.row.sku})"
            )
        elif each.outcome == "confirmed" and each.old and each.old.derived:
            lines.append(f"confirmed  {each.name}: was derived, now read at the same price")
        elif each.outcome in ("not found", "refused"):
            stays = "the row stays as it is" if each.old else "no row is made"
            lines.append(f"{each.outcome:9s}  {each.name}: {each.why}; {stays}")
    counts = Counter(each.outcome for each in compared)
    order: tuple[Outcome, ...] = ("confirmed", "changed", "new", "not found", "refused")
    return [*lines, ", ".join(f"{counts[outcome]} {outcome}" for outcome in order) + "."]


def _listed(errors: Sequence[Problem]) -> str:
    return f"{UserError(*errors, title='The catalogue is inconsistent')}\n"
