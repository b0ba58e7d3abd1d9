"""Bucket of a pipeline: Pulumi's states below `.pulumi/`, reviewed plans below `plans/`, locks below `locks/`.

Owns the bucket: private for good, with earlier versions of every object for a while. It is protected from deletion, and
no destroy ever empties it: `bezel init --destroy` does, after it has moved the states away. Leaves out who may read or
write it (`PipelineAccount`).

Example:
    ```python
    bucket = StateBucket("state", StateBucketArgs(project="acme-llm", bucket="acme-llm-states", location="us-east4"))
    pulumi.export("backend_url", bucket.url)
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp.storage import (
    Bucket,
    BucketLifecycleRuleActionArgs,
    BucketLifecycleRuleArgs,
    BucketLifecycleRuleConditionArgs,
    BucketSoftDeletePolicyArgs,
    BucketVersioningArgs,
)
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, child_options

SOFT_DELETE_SECONDS = 7 * 24 * 3600
"""How long a deleted object can be restored, even after all its versions are gone."""
NONCURRENT_DAYS, NONCURRENT_VERSIONS = 90, 20
"""An earlier version is deleted when it is as old as that, and so many newer ones exist."""
PLAN_DAYS = 90
"""A reviewed plan is deleted after that time: its pull request is stale."""


class StateBucketArgs(ComponentArgs):
    """Arguments of `StateBucket`."""

    project: str
    bucket: str
    """Globally unique name."""
    location: str
    """Region of the bucket."""
    labels: Mapping[str, str] = Field(default_factory=dict)


class StateBucket(pulumi.ComponentResource):
    """A private, versioned bucket; make what needs the states depend on this component.

    Attributes:
        bucket: Its name, known in every preview.
        url: Address for `PULUMI_BACKEND_URL`.
    """

    def __init__(self, name: str, args: StateBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:StateBucket", name, None, opts)
        Bucket(
            f"{name}-bucket",
            project=args.project,
            name=args.bucket,
            location=args.location.upper(),  # as the API returns it
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=False,
            versioning=BucketVersioningArgs(enabled=True),
            soft_delete_policy=BucketSoftDeletePolicyArgs(retention_duration_seconds=SOFT_DELETE_SECONDS),
            lifecycle_rules=[
                _delete(
                    BucketLifecycleRuleConditionArgs(
                        days_since_noncurrent_time=NONCURRENT_DAYS, num_newer_versions=NONCURRENT_VERSIONS
                    )
                ),
                _delete(BucketLifecycleRuleConditionArgs(age=PLAN_DAYS, matches_prefixes=["plans/"])),
            ],
            labels=dict(args.labels),
            opts=child_options(self, opts, protect=True),
        )
        self.bucket = args.bucket
        self.url = f"gs://{args.bucket}"
        self.register_outputs({"bucket": self.bucket, "url": self.url})


def _delete(condition: BucketLifecycleRuleConditionArgs) -> BucketLifecycleRuleArgs:
    return BucketLifecycleRuleArgs(action=BucketLifecycleRuleActionArgs(type="Delete"), condition=condition)
