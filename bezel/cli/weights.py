"""`bezel weights list STACK`: the models in a stack's buckets, and whether each is complete.

Leaves listing to `bezel.weights`, and copying to the operation `weights_copy`.
"""

import argparse
from contextlib import closing
from typing import Literal

from bezel.engine.project.project import Project
from bezel.operations.weights.stack_buckets import stack_buckets
from bezel.planner import AnyPlan, make_plan
from bezel.weights.bucket import Bucket
from bezel.weights.layout import stored_models
from bezel.weights.progress import size
from bezel.weights.retry import Watch
from bezel_base.console import say
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_SECONDS = 120.0


def run(project: Project, options: argparse.Namespace) -> Literal[0, 1]:
    """Print the models of a stack's bucket; return 1 where the stack's own model is incomplete.

    Raises:
        UserError: The stack cannot be planned, or its bucket cannot be used.
    """
    stack = options.stack
    plan = make_plan(
        project.configuration(stack), project=project.cloud_project(stack), stack=stack, models=project.models()
    )
    if plan.weights.bucket is None:
        consequence = "with this setting the stack reads nothing from a bucket."
        repair = "choose another one, e.g. fuse-prefetch."
        raise UserError(Problem("bezel:weights.loading", plan.weights.loading, consequence, repair))
    return 1 if [bucket for bucket in stack_buckets(plan) if not _list_models(plan, bucket)] else 0


def _list_models(plan: AnyPlan, name: str) -> bool:
    """Print the models of a bucket; whether the stack's own ones are complete there."""
    planned_paths = (*plan.bucket_models, *plan.weights.drafts, *plan.weights.adapters)
    with closing(Bucket(name, Watch(_SECONDS))) as bucket:
        models = {model.folder: model for model in stored_models(bucket, plan.weights.drafts)}
    for model in models.values():
        state = "; ".join(model.problems) or "complete"
        owner = f", of {plan.stack}" if model.folder in planned_paths else ""
        source = f", {model.source}" if model.source else ""
        say(f"gs://{name}/{model.folder}: {model.files} files, {size(model.size)}, {state}{owner}{source}")
    missing = [folder for folder in planned_paths if folder not in models]
    for folder in missing:
        repair = f"`.venv/bin/bezel weights copy {shell_word(plan.stack)}` copies it"
        say(f"gs://{name}/{folder}: missing, of {plan.stack}; {repair}")
    return not missing and not any(models[folder].problems for folder in planned_paths)
