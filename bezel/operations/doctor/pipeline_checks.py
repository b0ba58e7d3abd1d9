"""Check of a pipeline's rights over the bucket of a door: without them a deploy fails after the server is made.

The set-up of a pipeline (`bezel init`) limits its account to named buckets, by a condition in the project's policy. A
project without that set-up has no such condition, and nothing is to be checked. Reads only.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from bezel.foundation.permissions import DEPLOY_WEIGHTS
from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, Job, check
from bezel.outside_changes.reading import Cloud
from bezel.planner import AnyPlan
from bezel.rest import GoogleClient
from bezel_base.text.shell import shell_word

_BUCKET = re.compile(r'resource\.name == "projects/_/buckets/([^"/]+)"')


def pipeline_jobs(
    context: Context, client: GoogleClient, plans: Mapping[str, tuple[AnyPlan, str | None]]
) -> Iterator[Job]:
    """A check for each stack with a door."""
    for stack, (plan, project) in plans.items():
        if plan.door is not None and project is not None:
            subject = f"pipeline and door of {stack}"
            yield Job("access", subject, partial(_rights, context, client, project, subject, plan.door.bucket))


def _rights(context: Context, client: GoogleClient, project: str, subject: str, bucket: str) -> Iterable[Check]:
    policy = Cloud(client, context.environ).policy_by_post("RESOURCE_MANAGER", f"projects/{project}:getIamPolicy")
    buckets = named_buckets(policy, project)
    if buckets and bucket not in buckets:
        options = " ".join(f"--weights-bucket {shell_word(name)}" for name in (*buckets, bucket))
        detail = f"the pipeline's account has no rights over gs://{bucket}, so a deploy by it fails at the door"
        yield check("access", subject, "warning", detail, f"run `bezel init` again, as before, with {options}.")
    elif buckets:
        yield check("access", subject, "ok", f"the pipeline's account has rights over gs://{bucket}")


def named_buckets(policy: Mapping[str, Any], project: str) -> tuple[str, ...]:
    """The buckets that the pipeline's account may set up, in their order; () without a set-up. Pure."""
    role = f"projects/{project}/roles/{DEPLOY_WEIGHTS.id}"
    conditions = [
        str((binding.get("condition") or {}).get("expression") or "")
        for binding in policy.get("bindings") or ()
        if binding.get("role") == role
    ]
    return tuple(dict.fromkeys(name for text in conditions for name in _BUCKET.findall(text)))
