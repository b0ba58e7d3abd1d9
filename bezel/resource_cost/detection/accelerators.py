"""Detection of accelerators in a resource of any type: by the name of an input, a machine, or a value.

Anything not known to be without one counts as one: a machine of a family that is not listed here, an input with a
suspicious name whose value a preview cannot know. Compared with every input of the provider's SDK by
tests/policies/test_provider_schema.py.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from bezel.resource_cost.detection.machine_names import (
    is_hardware,
    is_plain_family,
    is_plain_machine,
    is_size_with_accelerator,
)
from bezel.resource_cost.inputs import UNKNOWN, camel, plainly
from bezel.resource_cost.nested_values import Value, describes_only, mappings, values

# "tpu" only as a separate word: "output" contains it. Resources of Kubernetes have the maker's name, too.
_NAME = re.compile(
    r"(?i:accelerator|gpu)|(?:^|[^a-zA-Z])(?:tpus?|TPUs?)(?![a-zA-Z])|^tpus?(?=[A-Z])|T(?:pu|PU)s?(?![a-z])"
    r"|(?i:nvidia\.com/|aws\.amazon\.com/neuron|habana\.ai/|huawei\.com/ascend|xilinx\.com/|pci-10de)"
    # Of Kubernetes: devices that another object names, and capacity for pods that another object describes.
    r"|^resource_?[cC]laims$|^provisioning_?[cC]lass_?[nN]ame$"
)
# Redundancy of a Cloud Run GPU; has no meaning without one.
_NO_NAME = frozenset({"gpuZonalRedundancyDisabled", "gpu_zonal_redundancy_disabled"})
# Names of inputs that hold a machine type, compared by letters alone; of a selector, what stands behind its prefix.
_MACHINE_NAME = re.compile(r".*machine(?:types?|famil(?:y|ies)|series)|(?:instance|node)types?|vmsize")
_FAMILY_NAME = re.compile(r"(?:instance|sku)(?:famil(?:y|ies)|categor(?:y|ies)|series|name)")
_FAMILY_ALONE = frozenset({"instancefamily", "instancefamilies"})
"""Of these, also without the prefix of a selector, as of a dedicated host."""
_SIZE_NAME = re.compile(
    r".*(?:type|kind|class|resource|device|size|shape|flavou?r|sku|family|category|product|pool|plan|preset)s?"
    r"|.*(?:type|size|shape|flavou?r|sku|plan|preset)_?names?|(?:.*_)?platforms?",
    re.IGNORECASE,
)
_SELECTOR = re.compile(r"node_?selectors?|nodeaffinity|node_affinity|requirements|node_?labels", re.IGNORECASE)
# A machine or an accelerator in longer text, in small letters: a Kubernetes resource, an option, a machine in YAML.
_MENTIONED = re.compile(
    r"nvidia\.com/(?:gpu|mig)|google\.com/tpu|(?:amd|intel)\.com/gpu|gpu\.(?:nvidia|amd|intel)\.com|tpu\.google\.com"
    r"|gke-(?:accelerator|gpu|tpu)|aws\.amazon\.com/neuron|habana\.ai/gaudi"
    r"|\b(?:a[2-9]x?-[a-z]+gpu-\d|g[2-9]-standard-\d|ct\d\w*-(?:standard|hightpu)-\d)"
    r"|\b(?:p[2-9]|g[3-9]|gr\d|inf\d|trn\d|dl\d)[a-z]{0,3}(?:-[a-z]+\d+)?\.(?:\d*x?large|metal)\b"
    r"|\bstandard_n[a-z]{1,2}\d+\w*|\b(?:vm|bm)\.gpu"
    r"|accelerators?(?:[-_ ]?(?:type|config|count))?[\"']?\s*[=:]|\b(?:accelerator|graphics)_optimized"
    r"|(?<![\w-])--(?:num-|guest-)?(?:gpus?|tpus?|accelerators?)(?:-(?:type|count|topology))?(?=[\s=\"',]|$)"
)
# One of these stands in each text that mentions one: looked for first, as most texts are long and have none.
_HINTS = (
    "gpu", "tpu", "accelerator", "optimized", "nvidia.com/mig", "neuron", "gaudi", "-standard-", "large", "metal",
    "standard_n",
)  # fmt: skip
_NOTHING = frozenset({"", "0", "0.0", "false", "no", "off", "none", "null"})
_LONGEST_NOTHING = 5
_DENYING = frozenset({"notin", "doesnotexist"})
# Types that get an accelerator by default, and the input that would set which.
_BY_DEFAULT = {
    "gcp:vertex/aiEndpointWithModelGardenDeployment:AiEndpointWithModelGardenDeployment": "deployConfig",
    # Compute Engine takes these for groups of machines with accelerators alone, and the group names them.
    "gcp:compute/resizeRequest:ResizeRequest": "resizeBy",
    "gcp:compute/regionResizeRequest:RegionResizeRequest": "resizeBy",
}
# Types that buy machines with accelerators alone, and the input that says which in words of its own.
_ALWAYS = {"aws:ec2/capacityBlockReservation:CapacityBlockReservation": "capacityBlockOfferingId"}
_OF_TPUS = re.compile(r"(?:gcp|google-native):tpu/.*")


def requested_by(
    token: str,
    inputs: object,
    priced: Collection[tuple[str, ...]] = frozenset(),
    holders: Collection[tuple[str, ...]] = frozenset(),
) -> tuple[str, str] | None:
    """The input that requests an accelerator, and which accelerator; None where the resource requests none.

    Args:
        token: the resource's type.
        inputs: of the resource, as plain values.
        priced: paths of inputs whose accelerators have a price; only what stands beside them is looked for.
        holders: paths of mappings around these, whose names request nothing by themselves.
    """
    if describes_only(token):
        return None
    requests: list[tuple[tuple[str, ...], object]] = []
    for value in _searched_values(inputs):
        path = tuple(map(camel, value.path)) if priced else ()
        if any(path[: len(priced_path)] == priced_path for priced_path in priced):
            continue
        above = max((len(holder) for holder in holders if path[: len(holder)] == holder), default=0)
        if requesting_path := _requesting_path(value, above):
            requests.append((requesting_path, value.value))
    if requests:
        first = requests[0][0]
        same = dict.fromkeys(
            "(not known yet)" if value is UNKNOWN else plainly(value) for path, value in requests if path == first
        )
        return ".".join(first), ", ".join(same)
    if priced:
        return None
    if _OF_TPUS.fullmatch(token):
        return "acceleratorType", "(not set: a TPU of Google's choice)"
    if token in _ALWAYS:
        return _ALWAYS[token], "(an accelerator that the offering names)"
    return (_BY_DEFAULT[token], "(not set: an accelerator of Google's choice)") if token in _BY_DEFAULT else None


def _searched_values(inputs: object) -> Iterator[Value]:
    """Values, and those of selectors that stand as `{key: NAME, operator: In, values: [...]}` under that name."""
    selected: list[Value] = []
    denied: set[tuple[str, ...]] = set()
    for path, mapping in mappings(inputs):
        key = mapping.get("key")
        if not isinstance(key, str) or not ("operator" in mapping or "values" in mapping):
            continue
        if str(mapping.get("operator", "")).lower() in _DENYING:
            denied.update(((*path, "values"), (*path, "key")))
        else:
            selected += [Value((*path, key), entry.value) for entry in values(mapping.get("values") or True)]
    for value in values(inputs):
        if not denied or not any(value.path[:length] in denied for length in range(len(value.path) + 1)):
            yield value
    yield from selected


def _requesting_path(value: Value, above: int) -> tuple[str, ...] | None:
    """The path of the input that requests an accelerator; None where this value does not."""
    if _is_nothing(value.value):
        return None
    names = _names_of(value.path)
    place = next((place for place in names.accelerators if place >= above), None)
    if place is not None:
        return value.path[: place + 1]
    text = value.value if isinstance(value.value, str) else None
    if names.machine and not (text is not None and is_plain_machine(text)):
        return value.path
    if names.family and not (text is not None and is_plain_family(text)):
        return value.path
    if text is None:
        return None
    if value.path[-1:] != ("name",) and (is_hardware(text) or _mentions(text)):
        return value.path
    return value.path if names.selects and is_size_with_accelerator(text) else None


class _Names(NamedTuple):
    """What the names of a path say: places that name an accelerator, and whether others hold a machine or select."""

    accelerators: tuple[int, ...]
    machine: bool
    family: bool
    selects: bool


@lru_cache(maxsize=16_384)
def _names_of(path: tuple[str, ...]) -> _Names:
    names = [part for part in path if not part.isdigit()]
    return _Names(
        tuple(place for place, part in enumerate(path) if _names_accelerator(part)),
        any(map(_holds_machine, names)),
        any(map(_holds_family, names)),
        bool(names and _SIZE_NAME.fullmatch(names[-1])) or any(map(_SELECTOR.fullmatch, names)),
    )


def _mentions(text: str) -> bool:
    small = text.lower()
    return any(hint in small for hint in _HINTS) and _MENTIONED.search(small) is not None


def _is_nothing(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_NOTHING and value.strip().lower() in _NOTHING
    return value is None or (isinstance(value, int | float) and value == 0)


def _names_accelerator(name: str) -> bool:
    return name not in _NO_NAME and _NAME.search(name) is not None


def _holds_machine(name: str) -> bool:
    return _MACHINE_NAME.fullmatch(_letters(name)) is not None


def _holds_family(name: str) -> bool:
    letters = _letters(name)
    return ("/" in name or letters in _FAMILY_ALONE) and _FAMILY_NAME.fullmatch(letters) is not None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.rpartition("/")[2].lower())
