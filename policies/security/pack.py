"""Policies of the pack, each with its name and its configuration. The clock is read here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from policies.adapter import resource_policy
from policies.config import LabelConfig, PolicyConfig
from policies.security import access, exposure
from policies.security.labels import fill_in, labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_policy import Policy

    from bezel.errors import Problem
    from policies.inputs import Inputs

NAME = "security"


def _labels(token: str, inputs: Inputs, config: LabelConfig) -> Iterator[Problem]:
    return labels(token, inputs, config, today=datetime.now(UTC).date())


POLICIES: list[Policy] = [
    resource_policy(
        "no-public-invoker",
        "Nobody unknown may call a service or read a bucket.",
        PolicyConfig,
        access.no_public_invoker,
    ),
    resource_policy(
        "own-service-account",
        "What runs code runs as a service account of its own.",
        PolicyConfig,
        access.own_service_account,
    ),
    resource_policy(
        "image-by-digest",
        "Containers run images that are named by digest.",
        PolicyConfig,
        exposure.image_by_digest,
    ),
    resource_policy(
        "no-plain-secret",
        "No secret in variables, arguments or metadata.",
        PolicyConfig,
        exposure.no_plain_secret,
    ),
    resource_policy(
        "no-external-address",
        "No accelerator has an address on the internet.",
        PolicyConfig,
        exposure.no_external_address,
    ),
    resource_policy(
        "labels",
        "Each resource says whose it is, what it is for and how long it is wanted.",
        LabelConfig,
        _labels,
        fill_in,
    ),
]
