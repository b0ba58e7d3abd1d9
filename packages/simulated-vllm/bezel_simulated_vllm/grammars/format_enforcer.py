"""lm-format-enforcer: the expressions that its engine takes; schemas and choices pass until the engine reads them.

Source: vllm 0.32.0, v1/structured_output/backend_lm_format_enforcer.py. Expressions are judged where the library is
installed; no extra of this package brings it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.constraint import Constraint


def check(constraint: Constraint) -> None:
    """Refuse a constraint that the backend `lm-format-enforcer` refuses when a request comes.

    Raises:
        RefusedError: with the text that vLLM sends.
        NotJudgedError: an expression, where the library is not installed.
    """
    if constraint.is_empty:
        return
    if constraint.kind == "regex":
        _check_expression(constraint.text)
    elif constraint.kind == "json":
        try:
            json.loads(constraint.text)
        except ValueError:
            raise RefusedError("Invalid JSON grammar specification.") from None
    elif constraint.kind == "grammar":
        raise RefusedError("LM Format Enforcer structured outputs backend does not support grammar specifications")


def _check_expression(pattern: str) -> None:
    if importlib.util.find_spec("lmformatenforcer") is None:
        raise NotJudgedError("an expression for lm-format-enforcer, which is not installed")
    library: Any = importlib.import_module("lmformatenforcer")
    try:
        library.RegexParser(pattern)
    except Exception as error:  # noqa: BLE001 - vLLM refuses on each of them
        raise RefusedError(f"Failed to compile regex for lm-format-enforcer: {error}") from None
