"""Detection of accelerators in a resource of any type: by the name of an input, a machine, or a value.

Anything not known to be without one counts as one: a machine of a family that is not listed here, an input with a
suspicious name whose value a preview cannot know. Compared with every input of the provider's SDK by
tests/policies/test_provider_schema.py.
"""

import re
from itertools import takewhile

from bezel.resource_cost.anywhere import Value, describes_only, values
from bezel.resource_cost.inputs import UNKNOWN, plainly

# "tpu" only as a separate word: "output" contains it.
_NAME = re.compile(
    r"(?i:accelerator|gpu)|(?:^|[^a-zA-Z])(?:tpus?|TPUs?)(?![a-zA-Z])|^tpus?(?=[A-Z])|T(?:pu|PU)s?(?![a-z])"
)
# Redundancy of a Cloud Run GPU; has no meaning without one.
_NO_NAME = frozenset({"gpuZonalRedundancyDisabled", "gpu_zonal_redundancy_disabled"})
# Names of inputs that hold a machine type, compared by letters alone.
_MACHINE_NAME = re.compile(r".*machine(?:types?|famil(?:y|ies)|series)|(?:instance|node)types?|vmsize")
# Families without accelerators: of Google, of its databases and VMware, of AWS and Azure under GKE; and placeholders
# that some APIs use in place of a machine.
_PLAIN_MACHINE = re.compile(
    r"(?:.*/)?(?:(?:custom|db|e2|f1|g1|n1|n2d?|n4[ad]?|c2d?|c3d?|c4[ad]?|t2[ad]|m[1-4]|h3|h4d|x4|z3|ve[12])(?:[-_].+)?"
    r"|composer-n1-.+|standard-\d+"
    r"|(?:a1|c\d|d\d|h1|hpc\d|i\d|im4|is4|m\d|r\d|t\d|u|x\d|z1)[a-z\d-]*\.[a-z\d-]+"
    r"|(?i:standard)_[A-M]\w*|[A-Z]+(?:_[A-Z]+)*|[EN][12]_[A-Z_]+\d*)",
)
_HARDWARE = re.compile(
    r"nvidia-(?!driver|smi|docker|container|cuda)[a-z\d-]*\d[a-z\d-]*|NVIDIA_[A-Z\d_]*\d[A-Z\d_]*|accelerators?"
    r"|tpu-?v\d.*|v[2-4]-(?:8|\d{2,4})|v(?:5e|5p|5litepod|6e|7x?)-\d+|ct\d\w*(?:-.+)?|tpu7x?-.+"
    r"|(?:.*/(?:machine|accelerator)Types/)?(?:a[2-9]x?-[a-z]+gpu-.+|g[2-9]-(?:standard|custom|node)-.+|ct\d\w*-.+)"
    r"|.*/acceleratorTypes/.+",
    re.IGNORECASE,
)
# The same inside longer text: a Kubernetes resource, an option of a command, a machine in YAML, a commitment.
_MENTIONED = re.compile(
    r"nvidia\.com/(?:gpu|mig)|google\.com/tpu|gpu\.nvidia\.com|tpu\.google\.com|gke-(?:accelerator|gpu|tpu)"
    r"|\b(?:a[2-9]x?-[a-z]+gpu-\d|g[2-9]-standard-\d|ct\d\w*-(?:standard|hightpu)-\d)"
    r"|accelerators?(?:[-_ ]?(?:type|config|count))?[\"']?\s*[=:]|\b(?:accelerator|graphics)_optimized",
    re.IGNORECASE,
)
# Types that get an accelerator by default, and the input that would set which.
_BY_DEFAULT = {"gcp:vertex/aiEndpointWithModelGardenDeployment:AiEndpointWithModelGardenDeployment": "deployConfig"}
_OF_TPUS = re.compile(r"(?:gcp|google-native):tpu/.*")
_NOTHING = (None, False, 0, "", "0", "false")


def requested_by(token: str, inputs: object) -> tuple[str, str] | None:
    """The input that requests an accelerator, and which accelerator; None where the resource requests none.

    Args:
        token: the resource's type.
        inputs: of the resource, as plain values.
    """
    if describes_only(token):
        return None
    requests = [(path, value.value) for value in values(inputs) if (path := _requesting_path(value))]
    if requests:
        first = requests[0][0]
        same = [value for path, value in requests if path == first]
        return ".".join(first), ", ".join("(not known yet)" if value is UNKNOWN else plainly(value) for value in same)
    if _OF_TPUS.fullmatch(token):
        return "acceleratorType", "(not set: a TPU of Google's choice)"
    return (_BY_DEFAULT[token], "(not set: an accelerator of Google's choice)") if token in _BY_DEFAULT else None


def _requesting_path(value: Value) -> tuple[str, ...] | None:
    """The path of the input that requests an accelerator; None where this value does not."""
    if value.value in _NOTHING:
        return None
    before = tuple(takewhile(lambda part: not _names_accelerator(part), value.path))
    if len(before) < len(value.path):
        return value.path[: len(before) + 1]
    of_machine = any(_MACHINE_NAME.fullmatch(re.sub(r"[^a-z]", "", name.lower())) for name in value.path)
    if of_machine and not (isinstance(value.value, str) and _PLAIN_MACHINE.fullmatch(value.value)):
        return value.path
    mentioned = isinstance(value.value, str) and (_HARDWARE.fullmatch(value.value) or _MENTIONED.search(value.value))
    return value.path if mentioned and value.path[-1:] != ("name",) else None


def _names_accelerator(name: str) -> bool:
    return name not in _NO_NAME and _NAME.search(name) is not None
