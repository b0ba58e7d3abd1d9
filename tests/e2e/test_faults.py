"""Faults of the platform and of the container: each is told with cause, consequence and repair, and mended that way."""

from collections.abc import Callable, Sequence

import pytest

from tests.support.e2e.fault_harness import FaultHarness, check_golden, error_text

AGAIN = "once it is mended the next `up` makes another revision and is green, then nothing is left to do"
PLAIN = "the next `up` is green, then nothing is left to do"


@pytest.mark.wide
@pytest.mark.parametrize(
    ("faults", "protection"),
    [
        pytest.param((("quota-exceeded", {}), ("secret-missing", {})), "always", marks=pytest.mark.long),
        ((("bucket-permission-missing", {}), ("secret-permission-missing", {})), "never"),
        ((("gpu-exhausted", {}),), "never"),
        pytest.param((("never-healthy", {}), ("slow-start", {"factor": 200})), "always", marks=pytest.mark.long),
    ],
    ids=["quota-secret", "bucket-permission", "gpu-exhausted", "never-healthy"],
)
def test_what_is_wrong_outside_the_stack_file_is_mended_and_deployed(
    stage: FaultHarness, faults: Sequence[tuple[str, dict[str, object]]], protection: str
) -> None:
    """Also where the service is protected from deletion, as in `prod`: no repair replaces it."""
    # One after the other: each leaves what the one before it has left.
    stage.rehearsal.set("deletion_protection", protection)
    seen = []
    for kind, parameters in faults:
        stage.need_a_revision()
        command = stage.add(kind, **parameters)
        text, state = error_text(stage.up()), stage.state()
        assert "run the same command again" in text
        stage.clear()
        seen.append((kind, command, text, state))
    stage.in_service()
    for kind, command, text, state in seen:
        check_golden(kind, command, text, state, AGAIN)


def _lower_the_batch(stage: FaultHarness) -> str:
    stage.clear()
    stage.rehearsal.set("vllm.max-num-batched-tokens", 3072)
    return "with a lower vllm.max-num-batched-tokens "


def _drop_the_argument(stage: FaultHarness) -> str:
    stage.rehearsal.set("vllm.kv-cache-dtype", None)
    return "without the argument, and with the same image, "


def _more_memory(stage: FaultHarness) -> str:
    stage.clear()
    stage.rehearsal.set("resources", {"cpu": 8, "memory": "32Gi"})
    return "with more resources.memory "


@pytest.mark.wide_except("out-of-memory-*")
@pytest.mark.parametrize(
    ("kind", "repair", "change"),
    [
        ("out-of-memory", "lower vllm.max-num-batched-tokens", _lower_the_batch),
        ("unknown-argument", "remove it from `vllm` in the stack file", _drop_the_argument),
        ("disk-full", "raise resources.memory", _more_memory),
    ],
)
def test_what_the_stack_file_can_mend_is_mended_by_what_the_message_says(
    stage: FaultHarness, kind: str, repair: str, change: Callable[[FaultHarness], str]
) -> None:
    stage.need_a_revision()
    command = stage.add(kind)
    text, state = error_text(stage.up()), stage.state()
    assert f"Repair: {repair}" in text
    how = change(stage)
    stage.in_service()
    check_golden(kind, command, text, state, how + PLAIN)


@pytest.mark.wide
@pytest.mark.parametrize(
    "faults",
    [
        (("crash-loop", {"after_seconds": 0.25}, ("--deadline", "8")), ("engine-death", {"after_requests": 3}, ())),
        (("operation-fails-late", {}, ()), ("operation-never-ends", {}, ("--deadline", "8"))),
        (("region-down", {}, ("--deadline", "8")),),
    ],
    ids=lambda faults: "-".join(kind for kind, _, _ in faults),
)
def test_a_service_that_is_there_is_checked_again_by_the_next_deploy(
    stage: FaultHarness, faults: Sequence[tuple[str, dict[str, object], tuple[str, ...]]]
) -> None:
    seen = []
    for kind, parameters, options in faults:
        stage.need_a_revision()
        command = stage.add(kind, **parameters)
        text, state = error_text(stage.up(*options), lines=False), stage.state()
        assert "Repair: " in text
        stage.clear()
        seen.append((kind, command, text, state))
    stage.in_service()
    for kind, command, text, state in seen:
        check_golden(kind, command, text, state, f"once it is mended {PLAIN}")


@pytest.mark.wide
def test_an_image_that_nobody_has_stops_the_preview(stage: FaultHarness) -> None:
    stage.settle()
    command = stage.add("image-missing")
    text, state = error_text(stage.rehearsal.local("preview", "l4-qat")), stage.state()
    stage.clear()
    stage.nothing_left()
    check_golden(
        "image-missing", command, text, state, "once the tag is there again there is nothing to do: nothing was changed"
    )


@pytest.mark.wide
def test_a_foreign_change_is_reported_by_one_deploy_and_undone_by_the_next(
    stage: FaultHarness,
) -> None:
    stage.settle()
    command = stage.add("service-changed")
    text, state = error_text(stage.up()), stage.state()
    assert "`pulumi up --refresh`" in text
    stage.in_service()
    check_golden("service-changed", command, text, state, f"that run has read what is there, so {PLAIN}")


@pytest.mark.wide
def test_a_full_disk_of_this_machine_changes_nothing(stage: FaultHarness) -> None:
    stage.need_a_revision()
    before = stage.service().json()["latestCreatedRevision"]
    command = stage.add("localcloud-disk-full")
    text, state = error_text(stage.up()), stage.state()
    assert stage.service().json()["latestCreatedRevision"] == before
    stage.clear()
    stage.in_service()
    check_golden("localcloud-disk-full", command, text, state, f"once there is room {PLAIN}")
