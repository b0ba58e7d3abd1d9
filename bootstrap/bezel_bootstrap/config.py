"""Configuration at the program's edge: its own keys as plain values, and the Google Cloud project."""

import os
from collections.abc import Mapping

import pulumi
from pulumi.runtime import config as engine_config

from bezel.foundation.settings import NAMESPACE
from bezel_catalog.option_values import as_structure


def values() -> dict[str, object]:
    """Read all keys of the program's namespace; structured ones reach a program as JSON text and are decoded."""
    prefix = f"{NAMESPACE}:"
    texts = {key: value for key, value in engine_config.CONFIG.get().items() if key.startswith(prefix)}
    return {key.removeprefix(prefix): as_structure(value) for key, value in texts.items()}


def google_project(environment: Mapping[str, str] = os.environ) -> str | None:
    """The Google Cloud project: the provider's setting, else its environment variables; None where none is set."""
    variables = (environment.get(name) for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"))
    return pulumi.Config("gcp").get("project") or next(filter(None, variables), None)
