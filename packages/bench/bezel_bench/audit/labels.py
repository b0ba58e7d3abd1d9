"""Parser of labels: the machine, the model and the settings that a text names, looked up in the catalogue.

Owns the words. Anything missing from the catalogue is unknown: no other machine's figures are substituted. Leaves out
the conclusions from a label.
"""

import functools
import re
from dataclasses import dataclass

from bezel_bench.audit.machines import StatedUnit, stated_machine
from bezel_bench.audit.words import names
from bezel_catalog import Accelerator, Architecture, Model, TpuSlice, accelerators, gpu_machines, models, tpus

# Families whose sizes look like Gemma 4's; a label that names one does not mean a model of the catalogue.
_OTHER_FAMILIES = re.compile(
    r"llama|qwen|mi[sx]tral|nemo|phi|falcon|deepseek|gpt|olmo|granite|yi-|glm|tiny|opt-|gemma[-_ ]?[123](?!\d)",
    re.IGNORECASE,
)
_DRAFTS = ("mtp", "ngram", "eagle", "medusa", "draft_model", "dflash", "suffix")
_DATE = re.compile(r"(?<!\d)(20\d\d)[-_]?([01]\d)[-_]?([0-3]\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class MachineLabel:
    """Hardware that shares one model: a number of chips of one kind; `unit` holds the figures of that kind."""

    id: str
    chips: int
    unit: Accelerator | TpuSlice | StatedUnit

    @property
    def tpu(self) -> bool:
        """Whether it is a TPU slice."""
        return not hasattr(self.unit, "fp8_flops")

    @property
    def memory_bytes(self) -> int:
        """Return the memory of all chips."""
        return self.chips * self.unit.memory_bytes

    @property
    def bandwidth(self) -> int:
        """Return the bytes per second of all chips."""
        return self.chips * self.unit.bandwidth_bytes_per_s

    def flops(self, encoding: str | None) -> int:
        """Return the dense operations per second of all chips, in the arithmetic used for weights of an encoding.

        An unstated encoding counts as the fastest that the chip has for weights served on it.
        """
        fast = getattr(self.unit, "fp8_flops", self.unit.bf16_flops)
        return self.chips * (fast if encoding in (None, "fp8") else self.unit.bf16_flops)


def machine_in(text: str, chips: int | None = None) -> MachineLabel | None:
    """Return the machine that a text names, with `chips` chips where the text does not count them.

    "8 x L4" and "l4x8" are eight; a name that is not in the catalogue is a machine only with its figures.
    """
    if stated := stated_machine(text):
        count = stated.count or chips or 1
        return MachineLabel(stated.unit.id if count == 1 else f"{count} x {stated.unit.id}", count, stated.unit)
    low = text.lower()
    for name, machine in gpu_machines().items():
        if name in low:
            return MachineLabel(name, machine.gpus, accelerators()[machine.accelerator])
    for pattern, gpu in _gpu_patterns():
        if match := pattern.search(low):
            count = int(match["before"] or match["after"] or chips or 1)
            return MachineLabel(gpu.id if count == 1 else f"{count} x {gpu.id}", count, gpu)
    for slice_ in tpus().values():
        if match := re.search(rf"(?<![a-z0-9]){slice_.chip}(?:[\s_-]?(\d+))?(?![a-z0-9])", low):
            count = int(match[1] or chips or 0)
            return MachineLabel(f"{slice_.chip}-{count}", count, slice_) if count else None
    return None


@functools.cache
def _gpu_patterns() -> tuple[tuple[re.Pattern[str], Accelerator], ...]:
    patterns = []
    for gpu in accelerators().values():
        first, *rest = gpu.id.split("-")[1:]  # without the vendor
        middle = "".join(rf"(?:{part}[\s_-]*)?" for part in rest[:-1])
        last = rf"[\s_-]*{middle}{rest[-1]}" if rest else ""
        name = rf"(?<![a-z0-9])(?:(?P<before>\d+)\s*x\s*)?(?:nvidia[\s_-]+)?{first}{last}(?:\s*x\s*(?P<after>\d+))?"
        patterns.append((re.compile(name + r"(?![a-z0-9])(?![\s_-]*ada\b)"), gpu))
    return tuple(patterns)


def shape_in(text: str) -> Architecture | None:
    """Return the architecture of the model that a text names by its id or its size ("12B", "26B-A4B", "E4B").

    A text of several sizes, or of another family, names none.
    """
    if _OTHER_FAMILIES.search(text):
        return None
    low = text.lower()
    matches = set()
    shapes = {model.architecture.id: model.architecture for model in models().values()}
    for name in shapes:
        size = name.rsplit("gemma-4-", 1)[-1].split("-")[0]
        if re.search(rf"(?<![a-z0-9.]){size}(?![a-z0-9])", low):
            matches.add(name)
    return shapes[matches.pop()] if len(matches) == 1 else None


def other_family(text: str) -> str | None:
    """Return the family of models that a text names and that the catalogue lacks, in lower case, e.g. "llama"."""
    match = _OTHER_FAMILIES.search(text)
    return match[0].lower() if match else None


def is_assistant(text: str) -> bool:
    """Whether a text names the draft model of a pair."""
    return bool(re.search(r"assistant|draft (?:model|checkpoint)", text, re.IGNORECASE))


def encoding_in(text: str) -> str | None:
    """Return the encoding of weights that a text names; "fp8" of a KV cache does not count."""
    low = re.sub(r"kv[\s_-]*(?:cache)?[\s_-]*(?:dtype)?[\s_:=-]*(?:fp8\w*|bf16|auto)", " ", text.lower())
    return next(
        (name for name, aliases in names("encodings").items() if any(_word(word, low) for word in aliases)), None
    )


def drafts_in(text: str) -> tuple[str, int | None] | None:
    """Return the method of speculation that a text names and its number of tokens, e.g. of "mtp 3"."""
    low = text.lower()
    for method in _DRAFTS:
        if match := re.search(rf"(?<![a-z]){method}(?:[\s_:=-]*(\d{{1,2}}))?(?![a-z0-9])", low):
            return method, int(match[1]) if match[1] else None
    return None


def prompts_in(text: str) -> str | None:
    """Return the kind of prompts that a text names."""
    low = text.lower()
    return next((kind for kind, aliases in names("prompts").items() if any(word in low for word in aliases)), None)


def platform_in(text: str) -> str | None:
    """Return the platform that a text names."""
    low = re.sub(r"[\s_]", "-", text.lower())
    return "cloud-run" if "cloud-run" in low else "gce" if re.search(r"(?<![a-z])gce(?![a-z])", low) else None


def date_in(text: str) -> str | None:
    """Return the ISO date in a text."""
    match = _DATE.search(text)
    return f"{match[1]}-{match[2]}-{match[3]}" if match else None


def named_model(text: str) -> Model | None:
    """Return the checkpoint whose id, or id on the hub, equals a text."""
    low = text.lower()
    return next((model for model in models().values() if low and low in (model.id, (model.hub_id or "").lower())), None)


def checkpoint_of(shape: Architecture | None, encoding: str | None, machine: MachineLabel | None) -> Model | None:
    """Return the checkpoint of an architecture and an encoding; without an encoding, the smallest that runs there."""
    if shape is None:
        return None
    kind = "tpu" if machine and machine.tpu else ""
    fitting = [
        model
        for model in models().values()
        if model.architecture == shape and encoding in (None, model.encoding) and not model.refused_on(kind)
    ]
    return min(fitting, key=lambda model: model.weight_bytes, default=None)


def _word(word: str, text: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None
