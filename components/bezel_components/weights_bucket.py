"""Cloud Storage bucket of the model's weights, with grants for its readers and for writers in a folder of it.

Owns the bucket only if it made it; an existing one, which other stacks may share, is used by its name and gets only
the grants of its readers and writers. The user copies the weights (`bezel weights copy`): they are gigabytes, under a
licence that the user accepts. `ModelFiles` checks that they are there.

Example:
    ```python
    weights = WeightsBucket(
        "weights",
        WeightsBucketArgs(project="acme-llm", bucket="acme-llm-models", location="us-east4", create=True,
                          readers=(identity.email,)),
        opts=pulumi.ResourceOptions(depends_on=[identity]),
    )
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp.storage import Bucket, BucketIAMMember, BucketIAMMemberConditionArgs
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, Text, child_options, join_texts
from bezel_components.base.granted_roles import OBJECT_USER, OBJECT_VIEWER


class WeightsBucketArgs(ComponentArgs):
    """Arguments of `WeightsBucket`."""

    project: str
    bucket: Text
    """Globally unique name, without `gs://`."""
    location: str
    """Region of the bucket if it is made here; the region of the service, or each cold start pays for egress."""
    create: bool = False
    readers: tuple[str, ...] = ()
    """E-mail addresses of the service accounts that may read the objects; `VllmService` names its own."""
    writers: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Folder, at any depth -> e-mail addresses of the service accounts that may write in it, and nowhere else;
    `LeasedVllmService` names the folder of its compile cache."""
    force_destroy: bool = False
    """Whether a destroy may delete a bucket that still holds objects: off, as a component knows no environment;
    `VllmService` has it on in `dev`."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of a bucket that is made here; `VllmService` adds its stack, environment and model."""


class WeightsBucket(pulumi.ComponentResource):
    """A private bucket for weights, made or only used; make its readers depend on this component.

    Attributes:
        bucket: The plain name, as it was given.
        url: `gs://NAME`; for a bucket that this stack makes it is unknown until the bucket exists, so resources that
            take it as an input wait for the bucket.
    """

    def __init__(self, name: str, args: WeightsBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:storage:WeightsBucket", name, None, opts)
        made: list[pulumi.Resource] = []
        self.bucket = args.bucket
        self.url: Text = join_texts("gs://", args.bucket)
        if args.create:
            bucket = Bucket(
                f"{name}-bucket",
                project=args.project,
                name=args.bucket,
                location=args.location.upper(),  # as the API returns it
                uniform_bucket_level_access=True,
                public_access_prevention="enforced",
                force_destroy=args.force_destroy,
                labels=dict(args.labels),
                opts=child_options(self, opts),
            )
            self.url = bucket.url
            made.append(bucket)
        for reader in args.readers:
            BucketIAMMember(
                f"{name}-reader-{reader.partition('@')[0]}",
                bucket=args.bucket,
                role=OBJECT_VIEWER,
                member=f"serviceAccount:{reader}",
                opts=child_options(self, opts, depends_on=made),
            )
        for folder, writers in args.writers.items():
            for writer in writers:
                BucketIAMMember(
                    f"{name}-writer-{folder.replace('/', '-')}-{writer.partition('@')[0]}",
                    bucket=args.bucket,
                    role=OBJECT_USER,
                    member=f"serviceAccount:{writer}",
                    condition=BucketIAMMemberConditionArgs(
                        title=f"only-{folder.partition('/')[0]}",  # at most 100 characters
                        expression=join_texts(
                            'resource.name.startsWith("projects/_/buckets/', args.bucket, f'/objects/{folder}/")'
                        ),
                    ),
                    opts=child_options(self, opts, depends_on=made),
                )
        self.register_outputs({"bucket": self.bucket, "url": self.url})
