"""Names of hardware as callers write them: `any v6e-4`, `L4`, `rtx pro 6000`. Pure."""

import re

from bezel.planner.base.hardware import leased_hardware
from bezel_base.errors import Problem, WrongValueError
from bezel_catalog import accelerators, closest

_FILLER = re.compile(r"^(?:any|an?|some|tpu|gpu|google)\s+", re.IGNORECASE)
_VENDOR = "nvidia-"


def hardware_named(text: str) -> str:
    """The id of an accelerator of Cloud Run, or of leased hardware.

    Raises:
        WrongValueError: The catalogue has none of that name.
    """
    known_ids = [*accelerators(), *leased_hardware()]
    word = text.strip()
    while (shorter := _FILLER.sub("", word)) != word:
        word = shorter
    word = re.sub(r"[\s_-]+", "-", word.lower())
    for candidate in (word, f"{_VENDOR}{word}"):
        if candidate in known_ids:
            return candidate
    near = closest(word, known_ids) or closest(f"{_VENDOR}{word}", known_ids)
    hint = f"did you mean {near}? " if near else ""
    repair = f"{hint}the catalogue has {', '.join(known_ids)}."
    raise WrongValueError(Problem("--accelerator", text, "the catalogue has no such accelerator.", repair))
