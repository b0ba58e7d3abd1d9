"""Explanation of a failed Cloud Run service by its conditions and its log, and the error hook that shows it.

The engine shows the provider's error, which for Cloud Run is mostly "failed to listen on PORT"; this hook adds the
platform's conditions, the container's last lines, the cause and the repair. It is an explanation and no gate: hooks
do not run again on the next update, the health check does.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime.proto import engine_pb2
from pulumi.runtime.settings import get_engine

from bezel_base.errors import Problem
from bezel_base.text.redaction import redact
from bezel_components.base.caller_names import problem_in_caller_words


def service_failure_hook(name: str = "explain-service-failure") -> pulumi.ErrorHook:
    """Make a hook for the options of a Cloud Run service: `ResourceHookBinding(on_error=[service_failure_hook()])`.

    On a failed create or update it logs the diagnosis at error level, under the service's own row. It never retries,
    never raises, and adds to the provider's error without replacing it.

    Args:
        name: The hook's name, unique in a program.
    """
    return pulumi.ErrorHook(name, _on_error)


def diagnose_failure(service: str, failure: str, errors: tuple[str, ...], *, repeat_errors: bool = True) -> Problem:
    """The problem of a failed service, with the cause that its conditions and its log show now.

    Args:
        service: `projects/P/locations/L/services/S`.
        failure: What failed, as a sentence; "" where the reader has seen it.
        errors: Errors that are known already.
        repeat_errors: Whether to show these.
    """
    # Late: most runs do not fail.
    from bezel.diagnosis.diagnosis import explain
    from bezel.diagnosis.platform import report
    from bezel.rest import GoogleClient

    with GoogleClient(timeout_seconds=10, deadline_seconds=20) as google:
        return explain(report(google, service, errors=errors), service, failure, repeat_errors=repeat_errors)


async def _on_error(args: pulumi.ErrorHookArgs) -> bool:
    if args.failed_operation in {"create", "update"}:
        try:
            service = service_of(args, os.environ)
            if service:
                # The engine shows the provider's own errors: they are considered, not repeated.
                problem = await asyncio.to_thread(
                    diagnose_failure, service, "", tuple(args.errors), repeat_errors=False
                )
                _log(args.urn, str(problem_in_caller_words(problem)))
        except Exception as error:  # noqa: BLE001 - a failure here must not hide the original one
            _log(args.urn, f"the cause could not be looked up: {redact(str(error))}")
    return False


def service_of(args: pulumi.ErrorHookArgs, environ: Mapping[str, str]) -> str | None:
    """`projects/P/locations/L/services/S` of the resource that failed, or None where it cannot be known."""
    if args.id.startswith("projects/"):
        return args.id
    inputs: Mapping[str, Any] = args.new_inputs or {}
    project = inputs.get("project") or _project(environ)
    location, name = inputs.get("location"), inputs.get("name")
    if not (project and isinstance(location, str) and isinstance(name, str)):
        return None
    return f"projects/{project}/locations/{location}/services/{name}"


def _project(environ: Mapping[str, str]) -> str | None:
    configured = pulumi.Config("gcp").get("project")
    return configured or environ.get("GOOGLE_PROJECT") or environ.get("GOOGLE_CLOUD_PROJECT")


def _log(urn: str, message: str) -> None:
    engine = get_engine()
    if engine is not None:
        engine.Log(engine_pb2.LogRequest(severity=engine_pb2.ERROR, message=message, urn=urn))
