"""Wrong arguments of components: value, consequence and repair, in an error that ends a program with its text alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.cloud_run_gpu_service import VpcEgress
from bezel_components.container_image import ContainerImageArgs
from bezel_components.runtime_identity import RuntimeIdentityArgs
from bezel_components.vllm_container import BucketMount, Probe, VllmContainer
from bezel_components.weights_bucket import WeightsBucketArgs

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE: dict[str, Any] = {"period_seconds": 30, "timeout_seconds": 5, "failure_threshold": 50}
CONTAINER: dict[str, Any] = {"arguments": ("m",), "cpu": 4, "memory_gib": 16, "startup_probe": Probe(**PROBE)}
IMAGE: dict[str, Any] = {"project": "p", "location": "us-east4", "repository_id": "hub", "image": "v/v", "tag": "t"}


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (lambda: Probe(**PROBE, pth="/"), ("Probe.pth = /", "does not exist", "did you mean path?")),
        (lambda: Probe(period_seconds=1, timeout_seconds=1), ("Probe.failure_threshold = (not set)", "pass it.")),
        (lambda: Probe(**{**PROBE, "period_seconds": "x"}), ("Probe.period_seconds = x", "valid integer")),
        (VpcEgress, ("VpcEgress\n", "network and subnetwork are both empty.", "set one of them")),
        (lambda: VpcEgress(network="n", tags="t"), ("VpcEgress.tags = t", "valid tuple")),
        (lambda: BucketMount(bucket="b", path="/m", options=("uid=0",)), ("another user than 1001", "omit it")),
        (lambda: BucketMount(path="/m"), ("BucketMount.bucket = (not set)",)),
        (lambda: VllmContainer(**{**CONTAINER, "cpu": "four"}), ("VllmContainer.cpu = four",)),
        (
            lambda: VllmContainer(**{**CONTAINER, "startup_probe": {**PROBE, "pth": "/"}}),
            ("Probe.pth = /", "did you mean path?"),
        ),
        (
            lambda: VllmContainer(**CONTAINER, environment={"A": "1"}, secrets={"A": "s"}),
            ("A: set both in the environment", "remove it from the environment."),
        ),
        (lambda: ContainerImageArgs(**IMAGE, digest="sha256:1"), ("ContainerImageArgs.digest = sha256:1", "pattern")),
        (lambda: WeightsBucketArgs(project="p", bucket="b"), ("WeightsBucketArgs.location = (not set)",)),
        (lambda: RuntimeIdentityArgs(project="p", account="a"), ("RuntimeIdentityArgs.account_id", "Known: project")),
    ],
)
def test_wrong_argument_has_consequence_and_repair(wrong: Callable[[], object], parts: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentsError) as raised:
        wrong()
    assert isinstance(raised.value, pulumi.RunError)
    for part in ("Repair: ", *parts):
        assert part in str(raised.value)


def test_right_arguments_are_taken() -> None:
    assert VllmContainer(**CONTAINER).startup_probe.failure_threshold == 50
    assert VpcEgress(network="n").network == "n"
