"""Values of JSON that Python reads and the libraries do not: half of a surrogate pair, no number, one without end."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work

_HALF = re.compile("[\ud800-\udfff]")


def check_json(value: Any, work: Work) -> None:
    """Refuse a value whose JSON the libraries do not read.

    Raises:
        RefusedError: they do not.
        NotJudgedError: it takes more than the bound of work.
    """
    pending = [value]
    while pending:
        work.spend()
        node = pending.pop()
        if isinstance(node, dict):
            pending += [*node, *node.values()]
        elif isinstance(node, list):
            pending += node
        elif not _is_readable(node):
            raise RefusedError("Failed to parse JSON: syntax error")


def _is_readable(node: Any) -> bool:
    if isinstance(node, str):
        return not _HALF.search(node)
    try:
        return not isinstance(node, int | float) or math.isfinite(node)
    except OverflowError:
        return False
