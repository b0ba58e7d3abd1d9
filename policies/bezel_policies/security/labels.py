"""Ownership labels that billing and clean-up use: owner, environment, expiry. Pure.

A missing label can be filled in from the configuration, with constants, so that each run fills in the same value. The
environment is never filled in: it decides the limits.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime

from bezel.planner.base.expiry import EXPIRY, NEVER, has_expired
from bezel.resource_cost.hardware import INSTANCE, SERVICE, TPU_VM, hardware_of
from bezel.resource_cost.inputs import Inputs
from bezel.resource_cost.prices.leases import Lease
from bezel_base.errors import NOT_SET, Problem
from bezel_policies.config import LabelConfig
from bezel_policies.security.access import RUN_JOB, WORKER_POOL

LABELLED = frozenset(
    {
        SERVICE,
        WORKER_POOL,
        RUN_JOB,
        INSTANCE,
        TPU_VM,
        "gcp:artifactregistry/repository:Repository",
        "gcp:compute/disk:Disk",
        "gcp:secretmanager/secret:Secret",
        "gcp:storage/bucket:Bucket",
    }
)
"""Resource types of this repository's stacks that have labels at `labels`."""
_VALUE = re.compile(r"[a-z0-9_-]{1,63}")


def labels(token: str, inputs: Inputs, config: LabelConfig, *, today: date | None = None) -> Iterator[Problem]:
    """Each resource has labels for its owner, its environment and its expiry, and has not expired."""
    for place in _labelled_inputs(token, inputs):
        for name in config.required:
            value = place.text("labels", name)
            if value is None or not _VALUE.fullmatch(value):
                repair = f"write `bezel:labels: {{{name}: {_EXAMPLES.get(name, 'VALUE')}}}`."
                if name == "environment":
                    repair = "set `bezel:environment`, which becomes this label."
                consequence = "its owner, purpose or expiry would be unknown."
                yield Problem(place.key("labels", name), value or NOT_SET, consequence, repair)
        expiry = place.text("labels", EXPIRY)
        if expiry is not None and (consequence := _expiry_problem(expiry, today or datetime.now(UTC).date())):
            repair = f"destroy it (`pulumi destroy`), or write the last day on which it is needed, or `{NEVER}`."
            yield Problem(place.key("labels", EXPIRY), expiry, consequence, repair)


def fill_in(token: str, inputs: Inputs, config: LabelConfig) -> Mapping[str, object] | None:
    """The labels with the configured values for missing ones; None where none is missing."""
    if token not in LABELLED:
        return None  # labels inside a queued resource are part of the request, which is never changed silently
    present = inputs.get("labels")
    present_labels = present if isinstance(present, Mapping) else {}
    missing = {name: value for name, value in sorted(config.defaults.items()) if not present_labels.get(name)}
    return {"labels": {**present_labels, **missing}} if missing else None


_EXAMPLES = {"owner": "ml-platform", EXPIRY: NEVER}


def _labelled_inputs(token: str, inputs: Inputs) -> list[Inputs]:
    if token in LABELLED:
        return [inputs]
    hardware = hardware_of(token, inputs)
    return [node.inputs for node in hardware.nodes] if isinstance(hardware, Lease) else []


def _expiry_problem(text: str, today: date) -> str:
    try:
        is_over = has_expired(text, today)
    except ValueError:
        return "expected a date, else the resource would never be removed."
    return f"it was needed until {text}, and today is {today}." if is_over else ""
