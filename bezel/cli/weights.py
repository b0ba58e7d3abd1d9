"""`bezel weights list|copy STACK`: lists the models in a stack's bucket, or copies the stack's model into it.

Owns which model goes where, the hub's token, and what is printed. Leaves listing and copying to `bezel.weights`.
"""

from __future__ import annotations

import base64
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner import AnyPlan, PlanError, make_plan
from bezel.rest import GoogleClient, RestError, endpoint
from bezel.weights.bucket import Bucket
from bezel.weights.copy import BucketSource, HubSource, Outcome, copy_model
from bezel.weights.errors import WeightsError
from bezel.weights.hub import Hub, Repository
from bezel.weights.layout import stored_models
from bezel.weights.progress import Progress, size
from bezel.weights.retry import Watch
from bezel.weights.transfer import Journal, Transfer, state_folder

if TYPE_CHECKING:
    from collections.abc import Container

    from bezel.pulumi_engine.project import Project

_TOKEN = "HF_TOKEN"  # noqa: S105 - a variable's name


def run_weights(project: Project, stack: str, *, copy: bool, origin: str | None, deadline: float) -> int:
    """List or copy; return the exit code.

    Args:
        project: The Pulumi project.
        stack: The stack that names the model and the bucket.
        copy: Whether to copy, else to list.
        origin: `hf:OWNER/NAME[@REVISION]` or `gs://BUCKET/PATH` of the model; None for its hub id.
        deadline: Seconds for the whole command.
    """
    try:
        plan = make_plan(project.configuration(stack), project=project.cloud_project(stack), stack=stack)
        watch = Watch(deadline)
        return _copy_all(plan, origin, watch) if copy else _list(plan, watch)
    except (PlanError, RestError) as error:
        sys.stderr.write(f"bezel: {error}\n")
        return 1


def _list(plan: AnyPlan, watch: Watch) -> int:
    """Print the models of a stack's bucket; return 1 where the stack's own model is incomplete."""
    stack, bucket = plan.stack, Bucket(_bucket(plan), watch)
    try:
        found = {model.folder: model for model in stored_models(bucket, plan.weights.drafts)}
    finally:
        bucket.close()
    wanted = _wanted(plan)
    for model in found.values():
        state = "; ".join(model.problems) or "whole"
        mark = f", of {stack}" if model.folder in wanted else ""
        source = f", {model.source}" if model.source else ""
        _say(f"gs://{bucket.name}/{model.folder}: {model.files} files, {size(model.size)}, {state}{mark}{source}")
    missing = [folder for folder in wanted if folder not in found]
    for folder in missing:
        _say(f"gs://{bucket.name}/{folder}: nothing, of {stack}; `.venv/bin/bezel weights copy {stack}` brings it")
    return 1 if missing or any(found[folder].problems for folder in wanted if folder in found) else 0


def _copy_all(plan: AnyPlan, origin: str | None, watch: Watch) -> int:
    """Copy a stack's model and its draft model into its bucket."""
    wanted = _wanted(plan) if origin is None else {plan.weights.path: origin}
    bucket = _bucket(plan)
    for folder, source in wanted.items():
        if not source:
            raise WeightsError(
                f"Nobody publishes {plan.model}.",
                "there is nothing to copy it from.",
                "name your own copy: --from gs://BUCKET/PATH or --from hf:OWNER/NAME.",
            )
        if not _copy(_Copy(plan, bucket, folder, source, watch)):
            return 1
    return 0


@dataclass(frozen=True)
class _Copy:
    plan: AnyPlan
    bucket: str
    folder: str
    source: str
    watch: Watch

    @property
    def drafts(self) -> Container[str]:
        return self.plan.weights.drafts


def _copy(copy: _Copy) -> bool:
    """Copy one model; return whether it is complete."""
    progress, journal = Progress(sys.stdout), Journal(state_folder())
    place = f"gs://{copy.bucket}/{copy.folder}"
    with ExitStack() as stack:
        bucket = Bucket(copy.bucket, copy.watch)
        stack.callback(bucket.close)
        if copy.source.startswith("gs://"):
            name, _, folder = copy.source.removeprefix("gs://").strip("/").partition("/")
            origin = Bucket(name, copy.watch)
            stack.callback(origin.close)
            _say(f"{copy.source} -> {place}")
            source: HubSource | BucketSource = BucketSource(origin, folder, bucket, journal, copy.watch, progress)
        else:
            repository = Repository.of(copy.source.removeprefix("hf:"))
            hub = Hub(copy.watch, lambda: _token(copy.plan))
            stack.callback(hub.close)
            commit, files = hub.files(repository)
            _say(f"{repository} (commit {commit[:12]}) -> {place}")
            source = HubSource(Transfer(hub, repository, commit, bucket, journal, copy.watch, progress), files)
        outcome = copy_model(
            source, bucket, copy.folder, watch=copy.watch, progress=progress, draft=copy.folder in copy.drafts
        )
    _say(_told(outcome))
    for failure in outcome.failures:
        sys.stderr.write(f"bezel: {failure}\n")
    return not outcome.failures


def _told(outcome: Outcome) -> str:
    parts = [f"{outcome.copied} files copied ({size(outcome.copied_bytes)})", f"{outcome.unchanged} were there already"]
    if outcome.left_out:
        parts.append(f"{outcome.left_out} left out, which vLLM does not read")
    if outcome.failures:
        parts.append("stopped: run the same command again to go on")
    return "  " + ", ".join(parts)


def _wanted(plan: AnyPlan) -> dict[str, str]:
    """Folder in the bucket -> where its model comes from."""
    weights = plan.weights
    return {weights.path: weights.source and f"hf:{weights.source}"} | {
        folder: source and f"hf:{source}" for folder, source in weights.drafts.items()
    }


def _bucket(plan: AnyPlan) -> str:
    if plan.weights.bucket is None:
        raise WeightsError(
            f"Stack {plan.stack} has weights.loading: {plan.weights.loading}.",
            "it reads nothing from a bucket.",
            "choose another weights.loading, e.g. fuse-prefetch, or copy nothing.",
        )
    return plan.weights.bucket


def _token(plan: AnyPlan) -> str:
    """The hub's token, from the environment, else from the secret that the stack names; "" for none."""
    if found := os.environ.get(_TOKEN, "").strip():
        return found
    secret = plan.secrets.get(_TOKEN)
    if secret is None:
        return ""
    url = f"{endpoint('SECRET_MANAGER')}projects/{plan.project}/secrets/{secret}/versions/latest:access"
    with GoogleClient() as client:
        return base64.b64decode(client.get(url)["payload"]["data"]).decode().strip()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
