"""Values of vLLM's options as its parser reads them, parsed once by the recorded kind and type of the option.

Owns the parsing (`typed_value`) and the readers of numbers in what it returns. Leaves the report of a refused value to
the planner, and fields inside of JSON documents, which vLLM's own classes convert, to the rules that read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_catalog.option_values import as_float, as_int, human_int

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_catalog.vllm.options import VllmOption

SWITCHES = ("switch", "switch-pair")
AUTO_LENGTH = -1
"""What vLLM's parser makes of `auto` where it also takes a number: the engine then chooses it by the free memory."""


def typed_value(option: VllmOption, written: object) -> Any:
    """The value that vLLM reads; None where its parser refuses what is written.

    Args:
        option: as recorded of the release.
        written: of the stack file or the catalogue: a negated switch already turned round, JSON texts decoded.

    Returns:
        bool for a switch, int or float for a number, dict or list for JSON, a list where several values were written;
        text, and a value of an option whose type was not recorded, as it is written.
    """
    if option.kind in SWITCHES:
        return written if isinstance(written, bool) else None
    if isinstance(written, list) and option.kind in ("values", "append") and option.type != "json":
        parts = [_one_value(option, part) for part in written]
        return None if None in parts else parts
    return _one_value(option, written)


def _one_value(option: VllmOption, written: object) -> Any:
    match option.type:
        case "int":
            return as_int(written)
        case "float":
            # A whole number stays one, so that a message shows it as it is written.
            whole = None if isinstance(written, float) else as_int(written)
            return as_float(written) if whole is None else whole
        case "human-int":
            return human_int(written)
        case "human-int-or-auto":
            return AUTO_LENGTH if written == "auto" else human_int(written)
        case "json":
            return written if isinstance(written, dict | list) else None
    return written


def integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """The whole number of an option.

    Args:
        values: typed, by option name.
        name: of the option.
        default: where the option is not set.

    Returns:
        None where the parser refuses the value.
    """
    value = values.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def real_number(values: Mapping[str, Any], name: str, default: float | None = None) -> float | None:
    """The number of an option, whole or not; arguments and result as of `integer`."""
    value = values.get(name, default)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
