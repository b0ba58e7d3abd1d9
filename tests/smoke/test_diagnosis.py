"""From what was said to what mends it: a table of what platforms and containers say, and what no rule may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.diagnosis.diagnosis import CAUSES, diagnose, explain
from bezel.diagnosis.platform import Condition, Report
from tests.support.smoke.fake_service import FIXTURES, SERVICE

NOT_LISTENING = Condition(
    "Ready",
    "CONDITION_FAILED",
    "HEALTH_CHECK_CONTAINER_ERROR",
    "The user-provided container failed to start and listen on the port defined provided by the PORT=8080 environment "
    "variable within the allocated timeout.",
)
KV_TOO_SMALL = (
    "ValueError: To serve at least one request with the models's max seq len (131072), (9.00 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (4.10 GiB). Based on the available memory, the estimated "
    "maximum model length is 59712."
)
RECORDED = (FIXTURES / "failing-starts.txt").read_text()

# As Google words it.
DISABLED = (
    "Cloud Run Admin API has not been used in project 42 before or it is disabled. Enable it by visiting "
    "https://console.developers.google.com/apis/api/run.googleapis.com/overview?project=42 then retry."
)


def explanation(report: Report, *, repeat_errors: bool = True) -> str:
    lines = str(explain(report, SERVICE, repeat_errors=repeat_errors)).splitlines()
    assert lines[0] == "service llm"
    return "\n".join(line.removeprefix("   ") for line in lines[1:])


def by_log(*lines: str) -> Report:
    return Report(conditions=(NOT_LISTENING,), lines=("INFO 11-21 starting", *lines, "exiting"))


def by_platform(reason: str, message: str = "") -> Report:
    return Report(conditions=(Condition("Ready", "CONDITION_FAILED", reason, message),), lines=("INFO starting",))


def test_a_secret_that_a_stack_makes_is_not_asked_for() -> None:
    name = "projects/42/secrets/bezel-stack-llm-door-program"
    text = f"Secret {name}/versions/1 was not found or cannot be read: it is in DESTROYED state."
    of_stack = diagnose(by_platform("SECRETS_ACCESS_CHECK_FAILED", text))
    assert "which the stack makes for itself" in of_stack.cause
    assert "pulumi up --refresh" in of_stack.repair
    of_user = diagnose(by_platform("SECRETS_ACCESS_CHECK_FAILED", text.replace("bezel-stack-llm-door-program", "hf")))
    assert "bezel secret set hf" in of_user.repair


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("gpu_memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        (
            "gpu_memory",
            "ValueError: Free memory on device (20.1/22.03 GiB) on startup is less than desired GPU memory utilization",
        ),
        ("door", '{"message": "the keys cannot be read: Cloud Storage answered HTTP 403 for keys.json"}'),
        ("door", "/door/door.pyz.bz2 is not the archive that this revision was deployed with, so it does not start"),
        ("door", "Operation denied by org policy: constraints/run.managed.requireInvokerIam"),
        ("door", "the door cannot start: DOOR_BUCKET: expected the name of a bucket"),
        ("kv_cache", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"),
        (
            "kv_cache",
            KV_TOO_SMALL,
        ),
        ("host_memory", "Memory limit of 16384 MiB exceeded with 16390 MiB used. Consider increasing the memory limit"),
        ("host_memory", "Container terminated on signal 9, exit code 137"),
        ("lease", "No node behind this gateway could take the request: 0 of 1 passed the last health checks."),
        ("argument", "vllm serve: error: unrecognized arguments: --swap-space 4"),
        ("disk", "OSError: [Errno 28] No space left on device: '/home/vllm/.cache/vllm/torch_compile_cache'"),
        ("engine", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace"),
        ("argument", "vllm serve: error: argument --dtype: invalid choice: 'fp8' (choose from 'auto', 'bfloat16')"),
        ("argument", "KeyError: 'invalid tool call parser: nonsense (chose from { gemma4,hermes })'"),
        (
            "argument",
            "  Value error, max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256). [type=x",
        ),
        ("argument", "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"),
        ("argument", "ValueError: Unknown attention backend: 'FLASH'. Valid options are: TRITON_ATTN"),
        ("argument", "KeyError: \"Reasoning parser 'x' not found. Available parsers: gemma4\""),
        ("argument", "  Input should be less than or equal to 1 [type=less_than_equal, input_value=1.5"),
        (
            "argument",
            "ValueError: --spec-tokens and --speculative-config['num_speculative_tokens'] are mutually exclusive",
        ),
        ("argument", "TypeError: CompressedTensorsConfig.__init__() missing 3 required positional arguments"),
        ("speculation", "TypeError: '>' not supported between instances of 'NoneType' and 'int'"),
        ("crash", "Container called exit(1)."),
        ("speculation", "NotImplementedError: Unsupported speculative method: 'mtp'"),
        (
            "mount",
            "gcsfuse: Error 403: runtime@demo does not have storage.objects.list access to the bucket., forbidden",
        ),
        ("mount", "PermissionError: [Errno 13] Permission denied: '/mnt/models/gemma/config.json'"),
        (
            "model_files",
            "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/mnt/models/x'.",
        ),
        ("model_files", "OSError: /mnt/models/gemma does not appear to have a file named config.json."),
        ("model_files", "RuntimeError: Cannot find any model weights with `/mnt/models/gemma`"),
        ("model_files", "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/models/gemma'"),
        ("model_files", 'Mounting volume "models" (bucket "demo-models") failed: bucket not found. Create it.'),
        ("probe", "STARTUP HTTP probe failed 30 times consecutively for container vllm on port 8080 path /health."),
    ],
)
def test_a_container_s_own_words_name_the_cause(kind: str, line: str) -> None:
    diagnosis = diagnose(by_log(line))
    assert diagnosis.kind == kind
    assert diagnosis.evidence == line.strip()
    assert diagnosis.cause
    assert diagnosis.repair


@pytest.mark.parametrize(
    ("kind", "reason", "message"),
    [
        ("probe", "HEALTH_CHECK_CONTAINER_ERROR", ""),
        ("probe", "PROGRESS_DEADLINE_EXCEEDED", ""),
        ("quota", "", "Quota exceeded for total allowable count of GPUs per project per region."),
        ("quota", "", "You do not have quota for using GPUs: NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"),
        ("capacity", "MIN_INSTANCES_NOT_PROVISIONED", ""),
        ("image", "CONTAINER_MISSING", "Image 'docker.pkg.dev/x/vllm:v9' not found."),
        ("image", "CONTAINER_PERMISSION_DENIED", ""),
        ("secret", "SECRETS_ACCESS_CHECK_FAILED", "Permission denied on secret: projects/1/secrets/hf/versions/latest"),
        ("host_memory", "", "Container terminated: memory. The container exited with code 137."),
        ("unknown", "INTERNAL", "Something went wrong."),
    ],
)
def test_the_platform_s_words_do_where_the_log_is_silent(kind: str, reason: str, message: str) -> None:
    assert diagnose(by_platform(reason, message)).kind == kind


UNHEARD_OF = (
    "Traceback (most recent call last):",
    '  File "/usr/lib/vllm/worker.py", line 7, in load',
    "(EngineCore pid=7) ERROR 11-21 10:00:00 [core.py:7] triton.compiler.errors.OddError: no such kernel",
    "RuntimeError: Engine core initialization failed. See root cause above.",
)
GAVE_UP = 'STARTUP HTTP probe failed 180 times consecutively for container "vllm" on port 8080 path "/health".'


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (("Container called exit(1).",), "before it answered (Container called exit(1)), for"),
        (("Container terminated on signal 11.",), "before it answered (Container terminated on signal 11), for"),
        (
            ('STARTUP HTTP probe failed 1 time consecutively for container "vllm".', "Container called exit(1)."),
            "before it answered (Container called exit(1)), for",
        ),
        ((), "before it answered, for"),
    ],
)
def test_a_process_that_ended_by_itself_is_not_blamed_on_the_probe(end: tuple[str, ...], message: str) -> None:
    """A process that ended by itself is not blamed on the probe's window."""
    for lines in (UNHEARD_OF, UNHEARD_OF[:3]):
        diagnosis = diagnose(Report((NOT_LISTENING,), (*lines, *end)))
        assert diagnosis.kind == "crash"
        assert message in diagnosis.cause
        assert diagnosis.cause.endswith("its last error: triton.compiler.errors.OddError: no such kernel")
        assert "longer probe window does not help" in diagnosis.repair
        assert diagnosis.evidence == UNHEARD_OF[2]


@pytest.mark.parametrize(
    "lines",
    [
        ("INFO loading", GAVE_UP),
        ("INFO loading", GAVE_UP, "Container called exit(143)."),
        ("INFO loading", GAVE_UP, *UNHEARD_OF, "Container called exit(1)."),
        ("INFO loading", GAVE_UP, "Container terminated on signal 9, exit code 137"),
        (*UNHEARD_OF[:2], "ValueError: caught, and gone on", "INFO loading", GAVE_UP),
        ("INFO loading", "The user-provided container failed the configured startup probe checks.", *UNHEARD_OF),
        ("INFO loading",),
    ],
)
def test_a_probe_that_gave_up_on_a_living_process_is_the_probe_s_window(lines: tuple[str, ...]) -> None:
    diagnosis = diagnose(Report((NOT_LISTENING,), lines))
    assert diagnosis.kind == "probe"
    assert "raise probe.failure_threshold" in diagnosis.repair


def test_a_traceback_in_a_server_that_answers_is_no_end() -> None:
    assert diagnose(Report(lines=UNHEARD_OF[:3])).kind == "unknown"


def test_a_refused_operation_names_the_cause_too() -> None:
    errors = (
        "Error waiting to create Service: Error code 8, message: Quota exceeded for total allowable count of GPUs",
    )
    assert diagnose(Report(errors=errors)).kind == "quota"


def test_the_log_of_an_earlier_container_does_not_explain_a_refusal() -> None:
    """What an earlier container has logged is not why a request was refused."""
    lines = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",)
    refused = "Error updating Service 's': googleapi: Error 404: Resource 's' does not exist."
    assert diagnose(Report(lines=lines, errors=(refused,))).kind == "unconfirmed"
    operation = "Error code 9, message: Revision 's-2' is not ready and cannot serve traffic."
    assert diagnose(Report(lines=lines, errors=(operation,))).kind == "gpu_memory"


def test_a_service_that_the_stack_does_not_know_is_named() -> None:
    """A service that the stack does not know is named and a known one is no cause."""
    error = "Error creating Service: googleapi: Error 409: Resource 'bezel-l4-qat' already exists."
    diagnosis = diagnose(Report(errors=(error,), lines=("INFO: Application startup complete.",)))
    assert diagnosis.kind == "exists"
    assert "gcloud run services delete bezel-l4-qat" in diagnosis.repair
    assert diagnose(Report(errors=("Error 409: conflict with another operation",))).kind != "exists"


def test_the_cause_beats_what_it_leads_to() -> None:
    lines = (
        "torch.OutOfMemoryError: CUDA out of memory.",
        *["noise"] * 50,
        "STARTUP HTTP probe failed 30 times",
        "exit code 137",
    )
    assert diagnose(by_log(*lines)).kind == "gpu_memory"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        ("### vllm serve /nonexistent/dir", "model_files"),
        ("### vllm serve google/gemma-4-12B-it", "model_files"),
        ("### vllm serve models/tiny-gemma4 --enable-auto-tool-choice", "argument"),
        ("### vllm serve models/tiny-gemma4 --load-format nonsense", "crash"),
    ],
)
def test_recorded_failing_starts_are_named(start: str, kind: str) -> None:
    """Recorded failing starts are named and an unclear one is not guessed at."""
    lines = RECORDED[RECORDED.index(start) :].split("\n### ")[0].splitlines()[2:]
    assert diagnose(Report(lines=tuple(lines))).kind == kind


def test_the_estimated_length_stands_in_the_repair() -> None:
    assert "lower vllm.max-model-len to 59712 or less" in diagnose(by_log(KV_TOO_SMALL)).repair


def test_a_warning_of_a_healthy_start_is_no_cause() -> None:
    lines = ("WARNING Unknown vLLM environment variable detected: VLLM_FOO", "GET /health HTTP/1.1 404 Not Found")
    assert diagnose(Report(lines=lines)).kind == "unknown"


def test_a_fault_that_comes_back_in_other_conditions_is_reported_once() -> None:
    text = "Revision 'llm-00001' is not ready. The container failed.\n\nLogs URL: https://console"
    conditions = (
        Condition("Ready", "CONDITION_FAILED", "R", text),
        Condition("RoutesReady", "CONDITION_FAILED", "R", text),
        Condition("ContainerHealthy", "CONDITION_FAILED", "R", "The container failed."),
        Condition("ResourcesAvailable", "CONDITION_FAILED", "", "Another matter."),
    )
    lines = [line for line in explanation(Report(conditions)).splitlines() if line.startswith("platform")]
    assert lines == [
        "platform: Ready failed (R): Revision 'llm-00001' is not ready. The container failed. Logs URL: https://console",
        "platform: ResourcesAvailable failed: Another matter.",
    ]


def test_an_early_cause_is_shown_beside_the_last_lines() -> None:
    lines = ["first", "NotImplementedError: Unsupported speculative method: 'mtp'", *[f"line {n}" for n in range(40)]]
    text = explanation(Report(lines=tuple(lines)))
    assert "  | NotImplementedError: Unsupported speculative method: 'mtp'\n  | ...\n  | line 29\n" in text
    assert "  | line 39\ncause: speculative method mtp" in text
    assert "first" not in text


@pytest.mark.parametrize("status", [(), ("Connection failed with status ERROR_CONNECTION_FAILED.",)])
def test_lines_of_a_shutdown_do_not_hide_where_a_start_hung(status: tuple[str, ...]) -> None:
    shutdown = [f"INFO [shutdown] step {number}" for number in range(15)]
    text = explanation(by_log("INFO Loading weights", GAVE_UP, *status, *shutdown))
    shown = "\n".join(f"  | {line}" for line in ("INFO 11-21 starting", "INFO Loading weights", GAVE_UP, *status))
    assert f"container's last lines:\n{shown}\ncause: " in text


def test_another_cause_shows_the_lines_after_a_failed_probe() -> None:
    assert "  | INFO [shutdown]\n  | exiting\n" in explanation(by_log(KV_TOO_SMALL, GAVE_UP, "INFO [shutdown]"))


def test_what_could_not_be_read_is_said() -> None:
    text = explanation(Report(notes=("the container's log could not be read: 403",)))
    assert text.startswith("platform: no failed condition\ncontainer's last lines: none\nnote: the container's log")
    assert "cause: no known cause fits" in text


def test_the_engine_s_own_error_is_not_repeated() -> None:
    report = Report(errors=("Error code 9",))
    assert "observed: Error code 9" in explanation(report)
    assert "Error code 9" not in explanation(report, repeat_errors=False)


@pytest.mark.slow
@given(st.lists(st.text(max_size=80), max_size=30), st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_the_diagnosis_and_every_one_ends_in_a_repair(
    lines: list[str], reason: str, message: str
) -> None:
    report = Report((Condition("Ready", "CONDITION_FAILED", reason, message),), tuple(lines))
    assert diagnose(report).kind in {"unknown", "crash", "probe", *(rule.kind for rule in CAUSES)}
    assert explanation(report).rsplit("\n", 1)[-1].startswith("Repair: ")


@given(st.sampled_from(["ya29.planted-0123", "Bearer planted-0123", "eyJhbGciOi.eyJhdWQ.planted"]), st.integers(0, 4))
def test_a_token_in_any_place_is_shown_in_none(token: str, place: int) -> None:
    places = ["", "", "", "", ""]
    places[place] = f" {token} unrecognized arguments: {token}"
    report = Report(
        (Condition("Ready", "CONDITION_FAILED", "X", places[0]),),
        (f"a{places[1]}", "b"),
        (places[2],),
        (places[3] + places[4],),
    )
    assert "planted" not in explanation(report)


@pytest.mark.parametrize(
    ("message", "cause", "repair"),
    [
        (
            (
                "Permission denied on secret: projects/1/secrets/hf-token/versions/latest for Revision service account "
                "llm@demo.iam.gserviceaccount.com. The service account used must be granted"
            ),
            "llm@demo.iam.gserviceaccount.com may not read the secret hf-token",
            "gcloud secrets add-iam-policy-binding hf-token --member=serviceAccount:llm@demo.iam.gserviceaccount.com",
        ),
        (
            "Secret projects/1/secrets/hf-token/versions/latest was not found or cannot be read",
            "the secret hf-token does not exist",
            "bezel secret set hf-token",
        ),
        (
            (
                'Mounting volume "weights" (bucket "models") failed: llm@demo.iam.gserviceaccount.com does not have '
                "storage.objects.list access to the bucket."
            ),
            "llm@demo.iam.gserviceaccount.com may not read the bucket models (storage.objects.list)",
            "gcloud storage buckets add-iam-policy-binding gs://models --member=serviceAccount:llm@demo",
        ),
        (
            "timeout while waiting for state to become 'done: true' (last state: 'done: false', timeout: 40m0s)",
            "the platform did not finish its operation within 40m0s",
            "run the same command again",
        ),
        (
            "1 error occurred: * Error updating Service 's': googleapi: Error 500: the disk is full: free some space.",
            "the API did not confirm the change (HTTP 500): the disk is full: free some space.",
            "correct what it names, then run `pulumi up --refresh`",
        ),
        (
            "* Error updating Service 's': http://127.0.0.1:1 does not answer (the connection breaks)",
            "the API did not confirm the change: http://127.0.0.1:1 does not answer (the connection breaks)",
            "run `pulumi up --refresh`",
        ),
        (
            '* Error updating Service "s": Patch "https://run.googleapis.com/v2/s?alt=json": EOF',
            'the API did not confirm the change: Patch "https://run.googleapis.com/v2/s?alt=json": EOF',
            "run `pulumi up --refresh`",
        ),
        (
            "* Error updating Service \"s\": timeout while waiting for state to become 'success' (timeout: 40m0s)",
            "the API did not confirm the change: timeout while waiting for state to become 'success' (timeout: 40m0s)",
            "run `pulumi up --refresh`",
        ),
        (
            '* Error creating Service: Post "https://run.googleapis.com/v2/s?alt=json": EOF',
            'the API did not confirm the creation: Post "https://run.googleapis.com/v2/s?alt=json": EOF',
            "run the same command again",
        ),
        (
            "Error waiting for Updating Service: error while retrieving operation: googleapi: Error 503: later",
            "the platform's operation could not be read, and may still succeed: googleapi: Error 503: later",
            "run `pulumi up --refresh`",
        ),
        (
            "Error waiting for Updating Service: Error code 13, message: Internal error encountered.",
            "the platform had an internal error: Internal error encountered.",
            "run the same command again",
        ),
        (
            f"* Error creating Service: googleapi: Error 403: {DISABLED}",
            "the API run.googleapis.com is not enabled in the project 42",
            "`gcloud services enable run.googleapis.com --project=42`, then run the same command again",
        ),
        (
            "* Error creating Service: googleapi: Error 403: Permission 'run.services.create' denied.",
            "the API refused the change (HTTP 403): Permission 'run.services.create' denied.",
            "correct what it names, then run the same command again",
        ),
        (
            "* Error creating Service: googleapi: Error 400: Invalid value",
            "the API refused the change (HTTP 400): Invalid value",
            "correct what it names, then run the same command again",
        ),
        (
            "Error code 13, message: Internal error encountered.",
            "the platform had an internal error: Internal error encountered.",
            "run the same command again",
        ),
    ],
)
def test_names_and_values_that_a_text_holds_come_back_in_cause_and_repair(
    message: str, cause: str, repair: str
) -> None:
    diagnosis = diagnose(Report(errors=(message,)))
    assert cause in diagnosis.cause
    assert repair in diagnosis.repair


def test_who_goes_on_serving_is_said_and_nothing_where_it_is_not_known() -> None:
    text = explanation(Report(lines=("x",), created="llm-2", serving="llm-1"))
    assert "consequence: llm-2 gets no traffic; llm-1 keeps serving" in text
    assert "consequence: llm-1 gets no traffic; no revision serves" in explanation(Report(created="llm-1"))
    assert "consequence: llm-1 has the traffic nevertheless" in explanation(Report(created="llm-1", serving="llm-1"))
    assert "consequence" not in explanation(Report(lines=("x",)))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(
    "message", ["CONTAINER_MISSING", "SECRETS_ACCESS_CHECK_FAILED", "Quota exceeded for GPUs", "probe failed 3 times"]
)
def test_no_repair_replaces_the_service(message: str, gated: bool) -> None:
    """`--replace` deletes the service with all its revisions, and fails where it is protected from deletion."""
    diagnosis = diagnose(Report(errors=(message,), gated=gated))
    assert "--replace" not in diagnosis.repair
    assert "Afterwards run the same command again" in diagnosis.repair


def test_no_cause_in_the_table_is_repaired_by_replacing_the_service() -> None:
    assert [rule for rule in CAUSES if "--replace" in rule.repair] == []


def test_where_a_gated_rollout_has_no_second_gpu_a_direct_one_is_offered() -> None:
    errors = ("Quota exceeded for total allowable count of GPUs",)
    assert diagnose(Report(errors=errors, gated=True)).repair.startswith("set rollout to direct")
    assert "rollout" not in diagnose(Report(errors=errors)).repair


def test_an_end_after_healthy_is_distinguished_from_never_healthy() -> None:
    """A container that ends after it became healthy is distinguished from one that never did."""
    ended = ("Container called exit(1).",)
    assert "became healthy and then ended by itself" in diagnose(Report((), ended, created="a", ready="a")).cause
    assert "ended by itself before it answered" in diagnose(Report((), ended, created="b", ready="a")).cause


@pytest.mark.parametrize(
    ("met", "kind", "value"),
    [
        ("waited 3 s for /health to answer 200, the last state was: HTTP 503", "busy", "HTTP 503"),
        ("waited 3 s for /health to answer 200, the last state was: HTTP 429: Rate exceeded.", "busy", "HTTP 429"),
        ("waited 3 s for GET /v1/models, the last state was: no response (ReadTimeout)", "connection", "ReadTimeout"),
        # A proxy's own words look like this too, and only the gateway's name what is wrong.
        ("the last state was: HTTP 503: No node behind this proxy", "busy", "HTTP 503"),
        ("/v1/models lists nothing, not 'gemma'", "unknown", ""),
    ],
)
def test_what_a_check_met_counts_only_without_another_cause(met: str, kind: str, value: str) -> None:
    """What a check met counts only where platform and container say nothing."""
    diagnosis = diagnose(Report(lines=("INFO serving",), errors=(met,)))
    assert diagnosis.kind == kind
    assert value in diagnosis.cause
    assert diagnose(Report(lines=("Container called exit(1).",), errors=(met,))).kind == "crash"


def test_a_line_that_was_cut_says_so_and_one_that_was_not_does_not() -> None:
    shown = explanation(Report(lines=("x" * 300, "y" * 301))).splitlines()
    assert "  | " + "x" * 300 in shown
    assert "  | " + "y" * 300 + " [...]" in shown
