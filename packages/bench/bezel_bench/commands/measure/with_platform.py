"""Series of a server's platform over the loads of a result, which is waited for after the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from bezel_base.terminal.status_line import StatusLine
    from bezel_bench.commands.targets import Targets
    from bezel_bench.result.document import Result


def with_platform_series(
    result: Result,
    targets: Targets,
    options: argparse.Namespace,
    outputs: Mapping[str, Any],
    show: StatusLine,
    *,
    variant: str = "",
) -> Result:
    """Return the result with the series of its loads, where the server's platform is known.

    Args:
        result: The loads, which have ended.
        targets: The servers that the program can measure.
        options: The options that name the server.
        outputs: The stack's outputs.
        show: Receives progress messages of the wait.
        variant: The server's name in a comparison: only its loads are asked for.
    """
    show.prefix = ""  # of the last load
    sent = [cell for cell in result.cells if cell.variant == variant]
    series = targets.platform_series(options, outputs, sent, show)
    cells = [
        cell.model_copy(update={"platform_series": [*series[cell.id]]}) if cell.id in series else cell
        for cell in result.cells
    ]
    return result.model_copy(update={"cells": cells})
