"""`bezel weights list|copy STACK`: lists the models in a stack's bucket, or copies the stack's model into it.

Owns which model goes where, the hub's token, and what is printed. Leaves listing and copying to `bezel.weights`.
"""

import argparse
import base64
import os
import sys
from contextlib import closing

from bezel.console import say
from bezel.errors import Problem, UserError
from bezel.planner import AnyPlan, make_plan
from bezel.pulumi_engine.project import Project
from bezel.rest import GoogleClient, endpoint
from bezel.state_folder import state_folder
from bezel.weights.bucket import Bucket
from bezel.weights.copy import BucketSource, HubSource, Outcome, copy_model
from bezel.weights.hub import Hub, Repository
from bezel.weights.layout import stored_models
from bezel.weights.progress import Progress, size
from bezel.weights.retry import Watch
from bezel.weights.transfer import Journal, Transfer

_TOKEN = "HF_TOKEN"  # noqa: S105 - a variable's name


def run(project: Project, options: argparse.Namespace) -> int:
    """List or copy; return the exit code.

    Raises:
        UserError: The stack cannot be planned, or its bucket or the model's source cannot be used.
    """
    stack = options.stack
    plan = make_plan(project.configuration(stack), project=project.cloud_project(stack), stack=stack)
    if plan.weights.bucket is None:
        consequence = "with this setting the stack reads nothing from a bucket."
        repair = "choose another one, e.g. fuse-prefetch, or copy nothing."
        raise UserError(Problem("bezel:weights.loading", plan.weights.loading, consequence, repair))
    watch = Watch(options.deadline)
    with closing(Bucket(plan.weights.bucket, watch)) as bucket:
        return _copy_all(plan, bucket, options.origin, watch) if options.copy else _list(plan, bucket)


def _list(plan: AnyPlan, bucket: Bucket) -> int:
    """Print the models of a stack's bucket; return 1 where the stack's own model is incomplete."""
    models = {model.folder: model for model in stored_models(bucket, plan.weights.drafts)}
    sources = _sources(plan)
    for model in models.values():
        state = "; ".join(model.problems) or "complete"
        owner = f", of {plan.stack}" if model.folder in sources else ""
        source = f", {model.source}" if model.source else ""
        say(f"gs://{bucket.name}/{model.folder}: {model.files} files, {size(model.size)}, {state}{owner}{source}")
    missing = [folder for folder in sources if folder not in models]
    for folder in missing:
        repair = f"`.venv/bin/bezel weights copy {plan.stack}` copies it"
        say(f"gs://{bucket.name}/{folder}: missing, of {plan.stack}; {repair}")
    return 1 if missing or any(models[folder].problems for folder in sources) else 0


def _copy_all(plan: AnyPlan, bucket: Bucket, origin: str | None, watch: Watch) -> int:
    """Copy a stack's model and its draft model into its bucket; stop at the first one that is incomplete."""
    repair = "name your own copy: --from gs://BUCKET/PATH or --from hf:OWNER/NAME."
    if origin == "":
        raise UserError(Problem("--from", origin, "it names no model.", repair))
    sources = {plan.weights.path: origin} if origin else _sources(plan)
    for folder, source in sources.items():
        if not source:
            raise UserError(Problem("bezel:model", plan.model, "this model is not published.", repair))
        outcome = _copy(plan, bucket, folder, source, watch)
        say(_summary(outcome))
        if outcome.failures:
            raise UserError(*map(str, outcome.failures))
    return 0


def _copy(plan: AnyPlan, bucket: Bucket, folder: str, origin: str, watch: Watch) -> Outcome:
    """Copy one model."""
    progress, journal = Progress(sys.stdout), Journal(state_folder("uploads"))
    target = f"gs://{bucket.name}/{folder}"

    def copied(source: HubSource | BucketSource) -> Outcome:
        draft = folder in plan.weights.drafts
        return copy_model(source, bucket, folder, watch=watch, progress=progress, draft=draft)

    if origin.startswith("gs://"):
        name, _, path = origin.removeprefix("gs://").strip("/").partition("/")
        with closing(Bucket(name, watch)) as other:
            say(f"{origin} -> {target}")
            return copied(BucketSource(other, path, bucket, journal, watch, progress))
    repository = Repository.of(origin.removeprefix("hf:"))
    with closing(Hub(watch, lambda: _token(plan))) as hub:
        commit, files = hub.files(repository)
        say(f"{repository} (commit {commit[:12]}) -> {target}")
        return copied(HubSource(Transfer(hub, repository, commit, bucket, journal, watch, progress), files))


def _summary(outcome: Outcome) -> str:
    parts = [f"{outcome.copied} files copied ({size(outcome.copied_bytes)})", f"{outcome.unchanged} unchanged"]
    if outcome.left_out:
        parts.append(f"{outcome.left_out} left out, which vLLM does not read")
    if outcome.failures:
        parts.append("stopped: run the same command again to continue")
    return "  " + ", ".join(parts)


def _sources(plan: AnyPlan) -> dict[str, str]:
    """Folder in the bucket -> source of its model, "" for a model that is not published."""
    models = {plan.weights.path: plan.weights.source, **plan.weights.drafts}
    return {folder: source and f"hf:{source}" for folder, source in models.items()}


def _token(plan: AnyPlan) -> str:
    """The hub's token, from the environment, else from the secret that the stack names; "" for none."""
    if token := os.environ.get(_TOKEN, "").strip():
        return token
    secret = plan.secrets.get(_TOKEN)
    if secret is None:
        return ""
    url = f"{endpoint('SECRET_MANAGER')}projects/{plan.project}/secrets/{secret}/versions/latest:access"
    with GoogleClient() as client:
        return base64.b64decode(client.get(url)["payload"]["data"]).decode().strip()
