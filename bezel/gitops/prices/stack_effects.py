"""Effect of another price file on the stacks: the price and the verdict of each plan, before and after.

Both sides are planned from the committed tree by processes of their own; only the price file differs.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel.gitops.changed.command import Plans, UnplannedError, plans
from bezel.gitops.changed.git_trees import checked_git, write_tree

PRICE_FILE = "packages/catalog/bezel_catalog/data/prices.csv"


@dataclass(frozen=True)
class StackEffect:
    """Price per hour at most, and whether the stack can be planned, with the old and with the new prices."""

    stack: str
    before: str
    after: str
    refused_before: str = ""
    refused_after: str = ""

    def line(self) -> str:
        """The effect in words."""
        sides = ((self.before, self.refused_before), (self.after, self.refused_after))
        return " -> ".join(f"refused ({refused})" if refused else price for price, refused in sides)


def effects(folder: Path, content: str) -> tuple[StackEffect, ...] | str:
    """Stacks whose price or verdict a new price file changes; a text where that is unknown.

    Args:
        folder: Of the Pulumi project, which holds the catalogue.
        content: Of the new price file.

    Raises:
        UserError: git failed.
    """
    with tempfile.TemporaryDirectory(prefix="bezel-prices-") as scratch:
        head = checked_git(folder, "rev-parse", "--verify", "HEAD^{commit}")
        old, new = (write_tree(folder, head, Path(scratch) / name) for name in ("old", "new"))
        (new / PRICE_FILE).write_text(content, encoding="utf-8")
        return compare_plans(old, new, plans)


def compare_plans(old: Path, new: Path, plans_of: Callable[[Path], Plans]) -> tuple[StackEffect, ...] | str:
    """The effects between two trees."""
    try:
        before, after = plans_of(old), plans_of(new)
    except UnplannedError as error:
        return f"unknown: {error}"
    both = sorted(before.keys() & after.keys())
    differences = [StackEffect(name, *_sides(before[name], after[name], "price", "problems")) for name in both]
    changed = [one for one in differences if (one.before, one.refused_before) != (one.after, one.refused_after)]
    return tuple(changed)


def _sides(before: Mapping[str, str], after: Mapping[str, str], *names: str) -> list[str]:
    return [" ".join(side.get(name, "").split()) for name in names for side in (before, after)]
