"""Ownership labels that billing and clean-up use: owner, environment, expiry. Pure.

A missing label can be filled in from the configuration, with constants, so that each run fills in the same value. The
environment is never filled in: it decides the limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

from bezel.errors import NOT_SET, Problem, shown
from policies.hardware import INSTANCE, SERVICE, TPU_VM, hardware_of
from policies.leases import Lease
from policies.security.access import RUN_JOB, WORKER_POOL

if TYPE_CHECKING:
    from policies.config import LabelConfig
    from policies.inputs import Inputs

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
EXPIRY = "expires-at"
NEVER = "never"
_VALUE = re.compile(r"[a-z0-9_-]{1,63}")


def labels(token: str, inputs: Inputs, config: LabelConfig, *, today: date) -> Iterator[Problem]:
    """Require each label with a valid value, and refuse resources that have expired."""
    for place in _labelled(token, inputs):
        for name in config.required:
            value = place.text("labels", name)
            if value is None or not _VALUE.fullmatch(value):
                yield Problem(
                    place.key("labels", name),
                    shown(value) if value else NOT_SET,
                    "nobody would know whose it is, what it is for, or when it may go.",
                    f"write `bezel:labels: {{{name}: {_EXAMPLES.get(name, 'VALUE')}}}`."
                    if name != "environment"
                    else "set `bezel:environment`, which becomes this label.",
                )
        expiry = place.text("labels", EXPIRY)
        if expiry is not None and (why := _expired(expiry, today)):
            yield Problem(
                place.key("labels", EXPIRY),
                shown(expiry),
                why,
                "take it down if nobody needs it (`pulumi destroy`), or write the date until which it is needed, as "
                f"YYYY-MM-DD, or `{NEVER}`.",
            )


def fill_in(token: str, inputs: Inputs, config: LabelConfig) -> Mapping[str, object] | None:
    """The labels with the configured values for missing ones; None where none is missing."""
    if token not in LABELLED:
        return None  # labels inside a queued resource are part of the request, which is never changed silently
    present = inputs.get("labels")
    given = present if isinstance(present, Mapping) else {}
    missing = {name: value for name, value in sorted(config.defaults.items()) if not given.get(name)}
    return {"labels": {**given, **missing}} if missing else None


_EXAMPLES = {"owner": "ml-platform", EXPIRY: NEVER}


def _labelled(token: str, inputs: Inputs) -> list[Inputs]:
    if token in LABELLED:
        return [inputs]
    hardware = hardware_of(token, inputs)
    return [node.inputs for node in hardware.nodes] if isinstance(hardware, Lease) else []


def _expired(text: str, today: date) -> str:
    if text == NEVER:
        return ""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return "it is no date, so nobody would ever take the resource down."
    return f"it was wanted until {day} and today is {today}." if day < today else ""
