"""Names of machines with accelerators, of Google and of other clouds, and of accelerators themselves.

Sources: Compute Engine, "GPU machine types" and "TPU machine types"; AWS, "Amazon EC2 instance types: accelerated
computing" (p, g, gr, inf, trn, dl, vt, f); Azure, "GPU and FPGA accelerated virtual machine sizes" (the N family) and
HPC; Oracle Cloud, "Compute shapes: GPU"; Alibaba Cloud, "GPU-accelerated compute-optimized" (gn, vgn, sgn, gi, ebmg);
IBM Cloud, "Profiles with GPU" (gx); sizes of clouds that have the accelerator's own name in them, or are of a family
with accelerators: Hetzner (gex), Scaleway (RENDER), OVHcloud (t1, t2), Vultr (vcg), AWS WorkSpaces (GRAPHICS). AWS's
machines of databases, caches and queues are its own in other words: cache.t3.micro, t3.small.search, ra3.xlplus.
Read in November 2026.
"""

import re
from functools import lru_cache

LONGEST = 256
"""Characters of the longest name of a machine; longer text is none."""

_GOOGLE = (
    r"nvidia-(?!driver|smi|docker|container|cuda)[a-z\d-]*\d[a-z\d-]*|nvidia_[a-z\d_]*\d[a-z\d_]*|accelerators?"
    r"|tpu-?v\d.*|v[2-4]-(?:8|\d{2,4})|v(?:5e|5p|5litepod|6e|7x?)-\d+|ct\d\w*(?:-.+)?|tpu7x?-.+"
    r"|(?:.*/(?:machine|accelerator)types/)?(?:a[2-9]x?-[a-z]+gpu-.+|g[2-9]-(?:standard|custom|node)-.+|ct\d\w*-.+)"
    r"|.*/acceleratortypes/.+"
)
_AWS = r"(?:p[2-9]|g[2-9]|gr\d|inf\d|trn\d|dl\d|vt\d|f[12])[a-z]*(?:-[a-z]+\d+)?\.(?:\d*x?large|\d*xlarge|metal)[\w-]*"
_AZURE = r"(?:standard|basic)_(?:n[a-z]*\d|pb\d|hb\w*gpu)\w*"
_ORACLE = r"(?:vm|bm)\.gpu\d?\.[\w.]+|(?:vm|bm)\.gpu\d[\w.]*"
_ALIBABA = r"ecs\.(?:[vs]?gn|gi|ga|f\d|ebmg|ebmf|gx)\w*[-.][\w.-]+"
_IBM = r"gx[23][cd]?(?:-\w+)+"
_PRODUCT = (
    r"(?:[abh]\d{2,3}|a[1-6]000|g[bh]\d{3}|rtx\w*|l4|l40s?|t4|v100|p4|p40|p100|k80|m60|mi\d{3}x?|gaudi\d?|inferentia\d?"
    r"|trainium\d?|tesla)"
)
_HARDWARE = re.compile(f"{_GOOGLE}|{_AWS}|{_AZURE}|{_ORACLE}|{_ALIBABA}|{_IBM}", re.IGNORECASE)
_SIZE = re.compile(
    rf"(?:[a-z]+[-_ ]){{0,3}}{_PRODUCT}(?:[-_ :x]\w+){{0,6}}|(?:\d+x)?{_PRODUCT}(?:[:x]\d+)?", re.IGNORECASE
)
# A product between other words of a size: vbm-112c-8-h100, an.g1.a100.kube.x1, NC24-A100.
_PRODUCT_WORD = re.compile(rf"(?<![a-z\d])(?:\d+x)?{_PRODUCT}(?:x\d+)?(?![a-z\d])", re.IGNORECASE)
_SIZE_FAMILY = re.compile(
    r"gex\d+\w*|render-\w+|t[12](?:-le)?-\d+|vcg-.+|n[cdgpv]\d+[a-z]*(?:[-_][a-z\d]+)*"
    r"|(?:.*[^a-z])?graphics(?:pro)?(?:[^a-z].*)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![a-z])(?:(?:gpus?|tpus?|accelerators?|accelerated)(?![a-z])|gpu[a-z]{1,3}\d)", re.IGNORECASE)
# Families without accelerators: of Google, of its databases and VMware, of AWS and Azure under GKE; and placeholders
# that some APIs use in place of a machine.
_PLAIN_MACHINE = re.compile(
    r"(?:.*/)?(?:(?:custom|db|e2|f1|g1|n1|n2d?|n4[ad]?|c2d?|c3d?|c4[ad]?|t2[ad]|m[1-4]|h3|h4d|x4|z3|ve[12])(?:[-_].+)?"
    r"|composer-n1-.+|standard-\d+"
    r"|(?:(?:cache|dax|db|kafka|ml|mq)\.)?"
    r"(?:a1|c\d|dc?\d|ds\d|h1|hpc\d|i\d|im4|is4|m\d|o[imr]\d|ra?\d|t\d|u|x\d|z1)[a-z\d-]*\.[a-z\d-]+"
    r"(?:\.(?:search|elasticsearch))?"
    r"|stream\.(?:standard|compute|memory)\.[a-z\d]+"
    r"|(?i:standard)_[A-M]\w*|(?!.*(?:GPU|TPU|ACCEL))[A-Z]+(?:_[A-Z]+)*|[EN][12]_[A-Z_]+\d*)",
)
# Families and categories by which nodes are selected, without accelerators.
_PLAIN_FAMILY = re.compile(
    r"(?:a1|c\d|d\d|h1|hpc\d|i\d|im4|is4|m\d|r\d|t\d|u|x\d|z1)[a-z\d-]*|[acdhimrtuxz]|hpc|im|is|[A-M][a-z\d]*"
)


@lru_cache(maxsize=4096)
def is_hardware(text: str) -> bool:
    """Whether a text is the name of an accelerator, or of a machine with one."""
    return len(text) <= LONGEST and _HARDWARE.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_size_with_accelerator(text: str) -> bool:
    """Whether a text under the name of a size, a shape or a product means an accelerator."""
    return len(text) <= LONGEST and any(
        (_SIZE.fullmatch(text), _SIZE_FAMILY.fullmatch(text), _PRODUCT_WORD.search(text), has_word(text))
    )


@lru_cache(maxsize=4096)
def is_plain_machine(text: str) -> bool:
    """Whether a text is the name of a machine that is known to have no accelerator."""
    return len(text) <= LONGEST and _PLAIN_MACHINE.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_plain_family(text: str) -> bool:
    """Whether a text is a family of machines that is known to have no accelerator."""
    is_machine = is_plain_machine(text) and any(map(str.isdigit, text))
    return is_machine or (len(text) <= LONGEST and _PLAIN_FAMILY.fullmatch(text) is not None)


def has_word(text: str) -> bool:
    """Whether a name has `gpu`, `tpu` or `accelerator` as a word of it."""
    return len(text) <= LONGEST and _WORD.search(text) is not None
