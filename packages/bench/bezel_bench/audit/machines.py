"""Machine that the caller describes: a name with memory, bandwidth and FLOP/s, e.g. "h100=80GB,3.35TB/s,989TFLOP/s".

For accelerators that the catalogue does not have. Leaves out the catalogue's own (labels.py).
"""

import re
from dataclasses import dataclass

_PREFIXES = {"g": 1e9, "t": 1e12, "p": 1e15}
_GIB = 2**30
_NUMBER = r"\d+(?:\.\d+)?"
_STATED = re.compile(
    r"(?:(?P<count>\d+)\s*x\s*)?(?P<name>[a-z0-9][\w.-]*)\s*=\s*"
    rf"(?P<memory>{_NUMBER})\s*(?P<memory_unit>gi?b)\s*,\s*"
    rf"(?P<bandwidth>{_NUMBER})\s*(?P<bandwidth_unit>[gt])b/s\s*,\s*"
    rf"(?P<flops>{_NUMBER})\s*(?P<flops_unit>[tp])flops?(?:/s)?"
)
EXAMPLE = "h100=80GB,3.35TB/s,989TFLOP/s"
# Accelerators that people measure on and that a catalogue may lack: a file that names one is of no other machine.
_OTHERS = re.compile(
    r"(?<![a-z0-9])(?:gh200|gb[23]00|[hb][123]00|h20|h800|a100|a10g?|a30|a40|a800|v100|t4|l40s?|l20|mi[23]\d\d[ax]?|"
    r"gaudi[\s_-]?\d?|tpu[\s_-]?v[2345]\w*|v5e|v5p|rtx[\s_-]?(?:[2345]0[5-9]0|a\d000)|inf2|trn[12]|910b)(?![a-z0-9])"
)


@dataclass(frozen=True, slots=True)
class StatedUnit:
    """One chip as described: bytes, bytes/s, dense FLOP/s in the arithmetic of the served weights."""

    id: str
    memory_bytes: int
    bandwidth_bytes_per_s: int
    bf16_flops: int
    fp8_flops: int


@dataclass(frozen=True, slots=True)
class StatedMachine:
    """A number of such chips; None where the text does not count them."""

    unit: StatedUnit
    count: int | None


def stated_machine(text: str) -> StatedMachine | None:
    """Return the machine that a text describes; None where it describes none completely."""
    match = _STATED.search(text.lower())
    if match is None:
        return None
    memory = float(match["memory"]) * (_GIB if match["memory_unit"] == "gib" else _PREFIXES["g"])
    bandwidth = float(match["bandwidth"]) * _PREFIXES[match["bandwidth_unit"]]
    flops = float(match["flops"]) * _PREFIXES[match["flops_unit"]]
    if not (memory and bandwidth and flops):
        return None
    unit = StatedUnit(match["name"], int(memory), int(bandwidth), int(flops), int(flops))
    return StatedMachine(unit, int(match["count"]) if match["count"] else None)


def other_machine(text: str) -> str | None:
    """Return the accelerator that a text names and that the catalogue may lack, e.g. "a100"."""
    match = _OTHERS.search(text.lower().replace("_", "-"))
    return match[0] if match else None


def describes(machine: str, name: str) -> bool:
    """Whether the description of a machine is one of the named accelerator, e.g. "h100=80GB,…" of "h100"."""
    stated = stated_machine(machine)
    return stated is not None and name in stated.unit.id
