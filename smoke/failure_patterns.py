"""Table of messages of containers and platforms with known causes, and their repairs.

Owns the causes that a text names. Leaves the search for them, and a start that no text explains, to
``smoke.diagnosis``.
"""

import re
from dataclasses import dataclass

AGAIN = "Afterwards run the same command again: it makes another revision in place of the one that failed."
# After a failed update the state holds the requested values, whatever exists.
REFRESH = (
    "`pulumi up --refresh`: it reads what is there and deploys what is planned. (A `make up` that failed has read it: "
    "run it again.)"
)


@dataclass(frozen=True)
class Rule:
    """A known cause of failure: ``cause`` and ``repair`` may use the groups of ``pattern`` by name or number."""

    kind: str
    pattern: re.Pattern[str]
    cause: str
    repair: str


def _rule(kind: str, pattern: str, cause: str, repair: str) -> Rule:
    return Rule(kind, re.compile(pattern, re.IGNORECASE), cause, repair)


# In the order in which they are tried: a specific cause before its consequences.
CAUSES: tuple[Rule, ...] = (
    _rule(
        "exists",
        r"Error 409: Resource '(?P<what>[^']+)' already exists",
        "a service {what} exists that the state does not hold: an earlier run made it (it was killed, or an answer was "
        "lost), or it is another stack's",
        "If an earlier run made it: on localcloud `.venv/bin/bezel local recover STACK --adopt`, with a project of "
        "your own `pulumi refresh --clear-pending-creates`, then `gcloud run services delete {what}`; then run the "
        "same command again. Otherwise give this stack another name.",
    ),
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
        "disk",
        r"No space left on device|\[Errno 28\]",
        "the container's disk is full; on Cloud Run that disk is the container's memory",
        "Raise resources.memory, and resources.cpu where the plan asks for it.",
    ),
    _rule(
        "engine",
        r"EngineDeadError|EngineCore encountered (?:an issue|a fatal error)|Engine core proc \S+ died",
        "vLLM's engine died while it served",
        "Read what it said before that; where it names nothing, give it more room: lower vllm.max-num-seqs or "
        "vllm.gpu-memory-utilization. Cloud Run has started the container again.",
    ),
    _rule(
        "mount",
        r"bucket \"(?P<what>[^\"]+)\"\) failed: (?P<account>\S+) does not have (?P<right>storage\.\S+) access",
        "{account} may not read the bucket {what} ({right})",
        "`gcloud storage buckets add-iam-policy-binding gs://{what} --member=serviceAccount:{account} "
        "--role=roles/storage.objectViewer`. " + AGAIN,
    ),
    _rule(
        "mount",
        r"(?:gcsfuse|mount|/mnt/|bucket|storage\.objects|storage\.googleapis).{0,200}?"
        r"(?:permission[ _]?denied|forbidden|\b403\b|does not have storage\.)|"
        r"does not have storage\.(?:objects|buckets)\.\w+ access|Permission denied: '?/mnt/",
        "the container may not read the bucket that is mounted",
        "Grant the service's account roles/storage.objectViewer on the bucket, and mount with uid=1001 and gid=1001. "
        + AGAIN,
    ),
    _rule(
        "secret",
        r"permission denied on secret: projects/[^/]+/secrets/(?P<what>[\w-]+)\S* for Revision service account "
        r"(?P<account>[\w.@-]+\w)",
        "{account} may not read the secret {what}",
        "`gcloud secrets add-iam-policy-binding {what} --member=serviceAccount:{account} "
        "--role=roles/secretmanager.secretAccessor`. " + AGAIN,
    ),
    _rule(
        "secret",
        r"secret \S*secrets/(?P<what>[\w-]+)\S* was not found",
        "the secret {what} does not exist, or has no version that can be read",
        "`gcloud secrets create {what} --data-file=-`, or where only its version is missing `gcloud secrets versions "
        "add {what} --data-file=-`. " + AGAIN,
    ),
    _rule(
        "secret",
        r"SECRETS_ACCESS_CHECK_FAILED|permission denied on secret.*|secret .{0,120}(?:not found|does not exist)|"
        r"secretmanager\.versions\.access",
        "a secret that the container asks for does not exist, or the service's account may not read it",
        "Create it with `gcloud secrets create NAME --data-file=-` and grant the service's account "
        "roles/secretmanager.secretAccessor. " + AGAIN,
    ),
    _rule(
        "image",
        r"CONTAINER_MISSING|CONTAINER_PERMISSION_DENIED|CONTAINER_IMAGE_UNAUTHORIZED|manifest unknown|"
        r"\bimage '?[\w./:@-]+'? (?:not found|could not be found|does not exist)|"
        r"failed to pull image|artifactregistry\.repositories\.downloadArtifacts",
        "the container image cannot be pulled",
        "Check the tag, that the Artifact Registry remote repository exists in the service's region, and that Cloud "
        "Run's service agent has roles/artifactregistry.reader on it. " + AGAIN,
    ),
    _rule(
        "quota",
        r"quota exceeded.*|exceeded.{0,60}quota|quota (?:violated|limit).*|AllocPerProjectRegion.*|"
        r"AllocNoZonalRedundancyPerProjectRegion.*",
        "the project has no quota left for this accelerator in this region",
        "Ask for more under IAM & Admin > Quotas (service run.googleapis.com), lower scaling.max_instances, wait until "
        "old revisions hold no instance (15 minutes without a request), or take another region. " + AGAIN,
    ),
    _rule(
        "capacity",
        r"MIN_INSTANCES_NOT_PROVISIONED|no available (?:instance|capacity)|"
        r"insufficient (?:GPU )?capacity|stockout",
        "the platform found no free accelerator in this region",
        "Try again later, or take another region. " + AGAIN,
    ),
    _rule(
        "model_files",
        r"Repo id must be in the form.{0,120}'/|does not appear to have a file named|"
        r"Mounting volume .{0,200}(?:bucket not found|no directory)|The specified bucket does not exist|"
        r"Cannot find any model weights|Invalid repository ID or local directory|LocalEntryNotFoundError|"
        r"No such file or directory: '?/mnt/|no config\.json|config\.json.{0,40}not found",
        "the model's files are not where vLLM looks for them",
        "Copy them into the bucket under weights.path (the deployment's own check prints the command). " + AGAIN,
    ),
    _rule(
        "lease",
        r"No node behind this gateway could take the request",
        "no machine behind the gateway answers: its lease has ended or was taken away, or its server died",
        "`.venv/bin/bezel tpu list` shows the leases that are there. One that is over is bought again once the stack "
        "file says `renew: true` under `bezel:lease`; of one that is there `.venv/bin/bezel tpu describe NAME` shows "
        "the console. Afterwards run the same command again.",
    ),
    _rule(
        "stream",
        r"the stream ended early, without its \[DONE\]",
        "something between the server and its caller ends streams early, and they look complete",
        "Nothing in the container's log says that it did: look at proxies on the way, and at the service's timeout "
        "(timeoutSeconds), then run the same command again.",
    ),
    _rule(
        "operation",
        r"timeout while waiting for state to become 'done: true'.+timeout: (?P<what>[^)]+)\)",
        "the platform did not finish its operation within {what}, and may still do so",
        "Run the same command again: it takes the service as it then is, and checks it. Where the conditions above do "
        "not change for an hour, delete the service (`gcloud run services delete`) and run it again.",
    ),
    _rule(
        "platform",
        r"Error code 1[34], message: (?P<what>.+)",
        "the platform failed inside itself: {what}",
        "Run the same command again; nothing in the stack has to change.",
    ),
    _rule(
        "unconfirmed",
        r"Error updating [^\n]*googleapi: Error (?P<code>\d{3}): (?P<what>[^\n]+)",
        "the API did not confirm the change (HTTP {code}): {what}",
        "Mend what it names, then run " + REFRESH,
    ),
    _rule(
        "unconfirmed",
        r"Error updating [^\n]*?: (?P<what>http\S+ does not answer \([^)]+\)|Patch \"[^\n]+)",
        "the API did not confirm the change: {what}",
        "Run " + REFRESH,
    ),
    _rule(
        "refused",
        r"googleapi: Error (?P<code>\d{3}): (?P<what>[^\n]+)",
        "the API refused the change (HTTP {code}): {what}",
        "Mend what it names, then run the same command again.",
    ),
)
