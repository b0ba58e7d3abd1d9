"""Arguments that may be outputs of other resources, and so be known only while the stack is deployed.

No policy reads them (docs/policies.md, "Inputs that may be unknown"), and a plan needs only that they are there: it is
made with a stand-in, and the resources get the output. Every other output is refused, as a plan cannot judge it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from bezel.planner import Plan, PlanError, Problem

if TYPE_CHECKING:
    from bezel_components.base.arguments import Text

LATE = "known only after the deploy"
_STAND_IN = "known-after-the-deploy"
"""A valid name of a bucket, of a network and of a subnetwork."""


@dataclass(frozen=True)
class LateInputs:
    """Outputs of other resources that a plan has a stand-in for; None where the plan has the name itself.

    Attributes:
        bucket: Name of the bucket with the weights.
        network: Network that the service sends through.
        subnetwork: Its subnetwork.
    """

    bucket: pulumi.Output[str] | None = None
    network: pulumi.Output[str] | None = None
    subnetwork: pulumi.Output[str] | None = None

    def bucket_of(self, planned: str) -> "Text":
        """The bucket's name."""
        return planned if self.bucket is None else self.bucket

    def network_of(self, planned: str) -> "Text":
        """The network's name."""
        return planned if self.network is None else self.network

    def subnetwork_of(self, planned: str) -> "Text":
        """The subnetwork's name."""
        return planned if self.subnetwork is None else self.subnetwork


NOTHING_LATE = LateInputs()
_PLACES = {"bucket": ("weights", "bucket"), "network": ("vpc", "network"), "subnetwork": ("vpc", "subnetwork")}


def split_late_inputs(settings: Mapping[str, Any]) -> tuple[dict[str, Any], LateInputs]:
    """Settings with stand-ins for the outputs among them, and these outputs.

    Raises:
        PlanError: Another setting is an output.
    """
    plan_settings: dict[str, Any] = dict(settings)
    late: dict[str, pulumi.Output[str]] = {}
    for name, (section, key) in _PLACES.items():
        inner = plan_settings.get(section)
        if isinstance(inner, Mapping) and isinstance(inner.get(key), pulumi.Output):
            late[name] = inner[key]
            plan_settings[section] = {**inner, key: _STAND_IN}
    refuse_outputs(plan_settings)
    return plan_settings, LateInputs(**late)


def refuse_outputs(settings: Mapping[str, Any]) -> None:
    """Refuse settings that are outputs of other resources.

    Raises:
        PlanError: There are some; it names each.
    """
    if problems := [_refusal(path) for path in _outputs_in(settings)]:
        raise PlanError(*problems)


def check_late_inputs(plan: Plan, late: LateInputs) -> None:
    """Refuse an unknown name that the plan itself needs.

    Raises:
        PlanError: The bucket's name is an argument of the server, or the rollout compares all names in the preview.
    """
    problems: list[Problem] = []
    if late.bucket is not None and plan.weights.mount_path is None:
        consequence = (
            f"with weights.loading = {plan.weights.loading} its name would be an argument of the server, which policies"
            " read in the preview."
        )
        repair = 'pass the name as text, or set `weights={"loading": "fuse"}`.'
        problems.append(Problem("weights.bucket", LATE, consequence, repair))
    if late.bucket is not None and plan.settings.weights.regional_buckets:
        consequence = "each region reads a bucket of its own, whose name begins with this one."
        problems.append(
            Problem("weights.bucket", LATE, consequence, "pass the name as text, or omit regional_buckets.")
        )
    if late != NOTHING_LATE and plan.settings.rollout == "gated":
        paths = [".".join(_PLACES[name]) for name in _PLACES if getattr(late, name) is not None]
        consequence = (
            "rollout = gated finds out in the preview whether there will be a new revision, by all its inputs."
        )
        repair = 'pass names as text, and their resources in `depends_on`; or set `rollout="direct"`.'
        problems.append(Problem(", ".join(paths), LATE, consequence, repair))
    if problems:
        raise PlanError(*problems)


def _outputs_in(value: object, path: str = "") -> Iterator[str]:
    """Paths of the outputs in settings."""
    if isinstance(value, pulumi.Output):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _outputs_in(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, part in enumerate(value):
            yield from _outputs_in(part, f"{path}.{number}")


def _refusal(path: str) -> Problem:
    places = ", ".join(".".join(place) for place in _PLACES.values())
    return Problem(
        path,
        LATE,
        "the plan and the policies judge it in the preview, so it cannot be an output of another resource.",
        f"pass the value itself; outputs are taken for {places} of VllmService alone.",
    )
