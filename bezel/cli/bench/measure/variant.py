"""Server that cells are measured on, with its manifest and vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.bench.cell.plan import ServerView
    from bezel.bench.prompts.token_calibration import Vocabulary
    from bezel.cli.bench.measure.target import TargetConnection


@dataclass(frozen=True)
class Variant:
    """A server that cells are measured on."""

    reached: TargetConnection
    server: ServerView
    vocabulary: Vocabulary
