"""From what a platform and a container said to what is wrong and what mends it: pure, a table of rules.

A container tells its cause in its log, often long before its last line; the platform only says that nobody listened.
So the log's rules come first, the platform's after them, and a text that no rule knows is shown, not guessed at.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bezel.rest import redact
from smoke.platform import Condition, Report

_SHOWN_LINES = 12
_AGAIN = (
    "Cloud Run does not try a failed revision again: afterwards run "
    "`pulumi up --replace '**cloudrunv2/service:Service**'`."
)


@dataclass(frozen=True)
class Rule:
    """One known fault: ``pattern`` finds it, ``cause`` and ``repair`` may use its groups by name or number."""

    kind: str
    pattern: re.Pattern[str]
    cause: str
    repair: str


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, by the best evidence.

    Attributes:
        kind: The name of the fault, ``unknown`` where no rule fits.
        evidence: The text that shows it, "" where there is none.
    """

    kind: str
    cause: str
    repair: str
    evidence: str = ""


def _rule(kind: str, pattern: str, cause: str, repair: str) -> Rule:
    return Rule(kind, re.compile(pattern, re.IGNORECASE), cause, repair)


# In the order in which they are tried: a specific cause before what it leads to.
RULES: tuple[Rule, ...] = (
    _rule(
        "argument",
        r"unrecognized arguments?: (?P<what>.+)",
        "vLLM's parser does not know {what}",
        "Remove it from `vllm` in the stack file, or spell it as this vLLM version does (`bezel plan` checks both).",
    ),
    _rule(
        "argument",
        r"(?:error: argument |invalid tool call parser: ?|KeyError: .(?=Reasoning parser)|"
        r"Error: (?=--[\w-]+ requires )|"
        r"ValueError: (?=Unknown attention backend|Unknown vLLM environment variable|--[\w-]+ and --))(?P<what>.+)",
        "vLLM refuses the value of an argument: {what}",
        "Correct it under `vllm` in the stack file.",
    ),
    _rule(
        "argument",
        r"(?:Value error, |(?=Input should be ))(?P<what>.+?)(?: \[type=|$)",
        "vLLM refuses its configuration: {what}",
        "Correct the arguments named there under `vllm` in the stack file.",
    ),
    _rule(
        "speculation",
        r"Unsupported speculative method: '?(?P<what>[\w-]+)",
        "speculative method {what} was asked for without a draft model that fits it",
        "Copy the model's assistant into the bucket and set vllm.spec-model to its path under /mnt/models, or remove "
        "vllm.spec-*.",
    ),
    _rule(
        "speculation",
        r"TypeError: '>' not supported between instances of 'NoneType' and 'int'",
        "speculation was asked for without a number of draft tokens",
        "Set vllm.spec-tokens, or remove vllm.spec-*.",
    ),
    _rule(
        "argument",
        r"CompressedTensorsConfig\.__init__\(\) missing",
        "vllm.quantization is compressed-tensors, and the checkpoint is not",
        "Remove vllm.quantization: vLLM reads it from the checkpoint.",
    ),
    _rule(
        "gpu_memory",
        r"(?:CUDA|HIP|XPU) out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED.{0,60}hbm|"
        r"Free memory on device .{0,120}less than desired",
        "the accelerator's memory is too small for the weights and vLLM's working space",
        "Lower vllm.max-num-batched-tokens or vllm.gpu-memory-utilization, or take a smaller encoding of the model or "
        "a larger accelerator.",
    ),
    _rule(
        "kv_cache",
        r"KV cache is needed, which is larger than.+estimated maximum model length is (?P<what>\d+)",
        "the KV cache that is left beside the weights does not hold one sequence of full length",
        "Lower vllm.max-model-len to {what} or less, set vllm.kv-cache-dtype to fp8, or raise "
        "vllm.gpu-memory-utilization.",
    ),
    _rule(
        "kv_cache",
        r"No available memory for the cache blocks|KV cache is needed, which is larger than|"
        r"(?:larger|greater) than the (?:maximum number of tokens that can be stored in|available) KV cache",
        "the KV cache that is left beside the weights does not hold one sequence of full length",
        "Lower vllm.max-model-len, set vllm.kv-cache-dtype to fp8, or raise vllm.gpu-memory-utilization.",
    ),
    _rule(
        "host_memory",
        r"Memory limit of [\d.]+ ?\w+ exceeded.*|"
        r"(?:exit(?:ed)?(?: with)?(?: code| status)?|code|status)[ :=(]+137\b|signal: ?killed|SIGKILL",
        "the container used more host memory than it has, and was killed (code 137)",
        "Raise resources.memory, or set vllm.safetensors-load-strategy to lazy so that the weights do not pass through "
        "memory whole.",
    ),
    _rule(
        "mount",
        r"(?:gcsfuse|mount|/mnt/|bucket|storage\.objects|storage\.googleapis).{0,200}?"
        r"(?:permission[ _]?denied|forbidden|\b403\b|does not have storage\.)|"
        r"does not have storage\.(?:objects|buckets)\.\w+ access|Permission denied: '?/mnt/",
        "the container may not read the bucket that is mounted",
        "Grant the service's account roles/storage.objectViewer on the bucket, and mount with uid=1001 and gid=1001. "
        + _AGAIN,
    ),
    _rule(
        "secret",
        r"SECRETS_ACCESS_CHECK_FAILED|permission denied on secret.*|secret .{0,120}(?:not found|does not exist)|"
        r"secretmanager\.versions\.access",
        "a secret that the container asks for does not exist, or the service's account may not read it",
        "Create it with `gcloud secrets create NAME --data-file=-` and grant the service's account "
        "roles/secretmanager.secretAccessor. " + _AGAIN,
    ),
    _rule(
        "image",
        r"CONTAINER_MISSING|CONTAINER_PERMISSION_DENIED|CONTAINER_IMAGE_UNAUTHORIZED|manifest unknown|"
        r"\bimage '?[\w./:@-]+'? (?:not found|could not be found|does not exist)|"
        r"failed to pull image|artifactregistry\.repositories\.downloadArtifacts",
        "the container image cannot be pulled",
        "Check the tag, that the Artifact Registry remote repository exists in the service's region, and that Cloud "
        "Run's service agent has roles/artifactregistry.reader on it. " + _AGAIN,
    ),
    _rule(
        "quota",
        r"quota exceeded.*|exceeded.{0,60}quota|quota (?:violated|limit).*|AllocPerProjectRegion.*|"
        r"AllocNoZonalRedundancyPerProjectRegion.*",
        "the project has no quota left for this accelerator in this region",
        "Ask for more under IAM & Admin > Quotas (service run.googleapis.com), lower scaling.max_instances, delete old "
        "revisions that hold instances, or take another region. " + _AGAIN,
    ),
    _rule(
        "capacity",
        r"MIN_INSTANCES_NOT_PROVISIONED|no available (?:instance|capacity)|"
        r"insufficient (?:GPU )?capacity|stockout",
        "the platform found no free accelerator in this region",
        "Try again later, or take another region. " + _AGAIN,
    ),
    _rule(
        "model_files",
        r"Repo id must be in the form.{0,120}'/|does not appear to have a file named|"
        r"Mounting volume .{0,200}(?:bucket not found|no directory)|The specified bucket does not exist|"
        r"Cannot find any model weights|Invalid repository ID or local directory|LocalEntryNotFoundError|"
        r"No such file or directory: '?/mnt/|no config\.json|config\.json.{0,40}not found",
        "the model's files are not where vLLM looks for them",
        "Copy them into the bucket under weights.path (the deployment's own check prints the command). " + _AGAIN,
    ),
    _rule(
        "crash",
        r"Container called exit\(\d+\)|Engine core initialization failed",
        "the container ended by itself before it answered, for a reason that is not known here",
        "Look in the log for the first error: it is the cause, the last one only says that there was one.",
    ),
    _rule(
        "probe",
        r"HEALTH_CHECK_CONTAINER_ERROR|STARTUP \w+ probe failed|failed to (?:start and )?listen on the port|"
        r"within the allocated timeout|DEADLINE_EXCEEDED|PROGRESS_DEADLINE_EXCEEDED",
        "the container did not answer its startup probe within the probe's window, and its log names no other cause",
        "Raise probe.failure_threshold (period x failures may be 1800 s with a GPU), or make loading faster.",
    ),
)

_UNKNOWN = Diagnosis(
    "unknown",
    "no known cause fits",
    "Read the lines above; the whole log is under `gcloud logging read` for this revision.",
)


def diagnose(report: Report) -> Diagnosis:
    """The fault that fits a report best: by the container's log, then by the platform's words."""
    texts = [*report.lines, *(str(one) for one in report.conditions), *report.errors]
    for rule in RULES:
        for text in texts:
            found = rule.pattern.search(text)
            if found:
                groups = {key: (value or "").strip() for key, value in found.groupdict().items()}
                return Diagnosis(rule.kind, rule.cause.format(**groups), rule.repair.format(**groups), text.strip())
    return _UNKNOWN


def explain(report: Report, *, repeat_errors: bool = True) -> str:
    """The whole text for the user: the platform's condition, the container's last lines, the cause, the repair.

    Args:
        report: What is known.
        repeat_errors: Whether the report's errors are shown; not where the engine shows them itself.
    """
    found = diagnose(report)
    parts = [f"met: {text}" for text in report.errors] if repeat_errors else []
    parts += [f"platform: {text}" for text in _told(report.conditions)] or ["platform: no failed condition"]
    shown = list(report.lines[-_SHOWN_LINES:])
    if found.evidence in report.lines and found.evidence not in shown:
        shown = [found.evidence, "...", *shown[1:]]
    parts += _indented("container's last lines:", shown) if shown else ["container's last lines: none"]
    parts += [f"note: {text}" for text in report.notes]
    parts += [f"cause: {found.cause}", f"repair: {found.repair}"]
    return redact("\n".join(parts))


def _told(conditions: Iterable[Condition]) -> list[str]:
    """Each thing once: a revision's fault comes back in the conditions of all that is built on it."""
    told: list[Condition] = []
    for one in conditions:
        if not any(one.message in earlier.message and one.reason in {"", earlier.reason} for earlier in told):
            told.append(one)
    return [" ".join(str(one).split()) for one in told]


def _indented(title: str, lines: Iterable[str]) -> list[str]:
    return [title, *(f"  | {line[:300]}" for line in lines)]
