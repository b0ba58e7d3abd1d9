"""Update of the price file: the rows that a reading of the price list changes, and their texts. Pure.

Only another price, a new row, or a price that was derived so far and is now read is worth a pull request. Dates alone
are not: they are renewed with the next such row. A row whose SKU is no longer listed keeps its price, and is reported:
what it costs now is unknown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bezel.forge import PullRequest
from bezel.gitops.prices.stack_effects import StackEffect
from bezel_base.text.markdown import code, link, prose, table_row
from bezel_catalog.prices import Price
from bezel_catalog.refresh import Compared, Outcome

_LONGEST_LINE = 1000
_LONGEST = 60_000  # characters of a pull request's text; GitHub's limit is 65,536


@dataclass(frozen=True)
class PriceUpdate:
    """What a reading of the price list changes.

    Attributes:
        month: Of the reading, e.g. "2026-11".
        compared: Every row with its comparison.
        address: Where the list was read, "" at Google: prices of another address are a rehearsal.
        stacks: Stacks whose price or verdict changes; a text where that is unknown.
        pull_request: The one that was opened or updated.
        dry_run: Whether nothing was sent to the forge.
    """

    month: str
    compared: Sequence[Compared]
    address: str = ""
    stacks: tuple[StackEffect, ...] | str = ()
    pull_request: PullRequest | None = None
    dry_run: bool = False

    def of(self, *outcomes: Outcome) -> list[Compared]:
        """The rows with one of some outcomes."""
        return [row for row in self.compared if row.outcome in outcomes]

    @property
    def read_now(self) -> list[Compared]:
        """Rows whose price was derived so far, and is now read at the same value."""
        return [
            row for row in self.of("confirmed") if row.old and row.row and row.old.is_derived and not row.row.is_derived
        ]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything for a pull request."""
        return bool(self.of("changed", "new") or self.read_now)

    @property
    def title(self) -> str:
        """Title of the pull request, and first line of its commit."""
        changed, new, read = len(self.of("changed")), len(self.of("new")), len(self.read_now)
        named = [f"{count} {word}" for count, word in ((changed, "changed"), (new, "new"), (read, "now read")) if count]
        return f"{'Rehearsal: ' if self.address else ''}Refresh prices of {self.month}: {', '.join(named) or 'none'}"

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        stacks = self.stacks
        return {
            "kind": "prices",
            "month": self.month,
            "address": self.address or None,
            "needed": self.is_needed,
            "dry_run": self.dry_run,
            "changed": [_json(row) for row in self.of("changed")],
            "new": [_json(row) for row in self.of("new")],
            "now_read": [_json(row) for row in self.read_now],
            "unknown": [_json(row) for row in self.of("not found", "refused")],
            "confirmed": len(self.of("confirmed")),
            "stacks": None
            if isinstance(stacks, str)
            else [{"stack": one.stack, "before": one.before, "after": one.after, "text": one.line()} for one in stacks],
            "pull_request": self.pull_request and {"number": self.pull_request.number, "url": self.pull_request.url},
        }

    def text(self) -> str:
        """The content for a terminal."""
        lines = [f"{row.name}: {_before_after(row)}" for row in self.of("changed", "new")]
        lines += [f"{row.name}: {_current_price(row)}" for row in self.read_now]
        lines += [f"{row.name}: unknown: {row.why}" for row in self.of("not found", "refused")]
        if self.is_needed:
            lines += [f"stack {line}" for line in _stack_lines(self.stacks)]
        else:
            lines.append(self._nothing())
        if self.dry_run and self.is_needed:
            lines.append(f"A pull request would be opened or updated: {self.title}")
        if self.pull_request:
            lines.append(f"pull request {self.pull_request.number}: {self.pull_request.url}")
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The content for the run's summary."""
        head = [f"### {self.title}", ""]
        if self.pull_request:
            head += [f"Pull request {link(self.pull_request.number, self.pull_request.url)}.", ""]
        return "\n".join(head) + self.body()

    def body(self) -> str:
        """Text of the pull request."""
        lines: list[str] = []
        if self.address:
            lines += [
                f"**A rehearsal: these prices were read at {code(self.address)}, not at Google. Do not merge.**",
                "",
            ]
        if rows := self.of("changed", "new"):
            lines += ["| price | USD before -> after |", "| --- | --- |"]
            lines += [table_row((prose(price.name), prose(_before_after(price), _LONGEST_LINE))) for price in rows]
        if rows := self.read_now:
            lines += ["", "Derived so far, now read at the same price:", "", *_items(rows, _current_price)]
        if rows := self.of("not found", "refused"):
            lines += ["", "**Unknown now**; the rows keep their last price:", "", *_items(rows, _unknown)]
        if self.is_needed:
            effects = [f"- {prose(line, _LONGEST_LINE)}" for line in _stack_lines(self.stacks)]
            lines += ["", "Stacks whose price per hour (at most) or verdict changes:", "", *effects]
        else:
            lines += ["", self._nothing()]
        lines += ["", f"{len(self.of('confirmed'))} prices are confirmed; their dates become {self.month}."]
        text = "\n".join(lines) + "\n"
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n\n(shortened; the commit has every row)\n"

    def _nothing(self) -> str:
        confirmed = len(self.of("confirmed"))
        return f"Nothing to do: {confirmed} prices are confirmed, and none has another value."


def _json(compared: Compared) -> dict[str, object]:
    def side(price: Price | None) -> dict[str, str] | None:
        if price is None:
            return None
        value = {"usd": f"{price.usd_per_unit:f}", "unit": price.unit, "as_of": price.as_of}
        return value | {"source": price.source, "sku": price.sku}

    unknown = compared.outcome in ("not found", "refused")
    after = None if unknown else side(compared.row)
    return {"name": compared.name, "before": side(compared.old), "after": after, "why": compared.why or None}


def _before_after(compared: Compared) -> str:
    sides = [_price(price) if price else "unpriced" for price in (compared.old, compared.row)]
    return " -> ".join(sides)


def _price(price: Price) -> str:
    sku = f", SKU {price.sku}" if price.sku else ""
    return f"{price.usd_per_unit:f} per {price.unit} ({price.as_of}, {price.source}{sku})"


def _current_price(compared: Compared) -> str:
    return f"now read: {_price(compared.row)}" if compared.row else ""


def _unknown(compared: Compared) -> str:
    last = f"; last {_price(compared.old)}" if compared.old else ""
    return f"{compared.why}{last}"


def _items(rows: Iterable[Compared], text: Callable[[Compared], str]) -> list[str]:
    return [f"- {prose(row.name)}: {prose(text(row), _LONGEST_LINE)}" for row in rows]


def _stack_lines(stacks: tuple[StackEffect, ...] | str) -> list[str]:
    if isinstance(stacks, str):
        return [stacks]
    return [f"{one.stack}: {one.line()}" for one in stacks] or ["none"]
