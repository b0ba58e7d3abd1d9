"""The provider's settings and environment variables, as plain values."""

import os
from collections.abc import Mapping

import pulumi

from bezel_base.errors import Problem, UserError


def google_project(environment: Mapping[str, str] = os.environ) -> str | None:
    """The Google Cloud project: the provider's setting, else its environment variables; None where none is set."""
    variables = (environment.get(name) for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"))
    return pulumi.Config("gcp").get("project") or next(filter(None, variables), None)


def is_simulated(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the server is a simulated one, so that no figure counts as a measurement."""
    return environment.get("BEZEL_SIMULATED") == "1"


def deadline(seconds: float, environment: Mapping[str, str] = os.environ) -> float:
    """The time limit: `seconds`, or less by BEZEL_DEADLINE_SECONDS, which rehearsals set.

    Raises:
        UserError: The variable is not a positive number.
    """
    text = environment.get("BEZEL_DEADLINE_SECONDS", "")
    if not text:
        return seconds
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not limit > 0:
        consequence = "expected a number of seconds above 0: checks could not wait."
        raise UserError(Problem("BEZEL_DEADLINE_SECONDS", text, consequence, "write e.g. 600, or unset it."))
    return min(seconds, limit)
