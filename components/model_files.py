"""Looks whether a bucket holds a model before anything is paid for that would need it.

`ModelFiles` makes nothing and deletes nothing: it is the step between the bucket and the service at which a deploy
stops when the weights were never copied, or only half. How it looks is `model_files_provider`'s, what a model consists
of `model_layout`'s. Leaves out the files' contents: whether the weights fit the arguments is the plan's question.

Example:
    ```python
    model = ModelFiles(
        "model",
        ModelFilesArgs(bucket_url=weights.url, bucket=weights.bucket, path="gemma-4-12b-it",
                       source="google/gemma-4-12b-it"),
    )
    ```
"""

import pulumi
from pulumi.dynamic import Resource

from components.arguments import ComponentArgs, Text
from components.providers.model_files import ModelFilesProvider


class ModelFilesArgs(ComponentArgs):
    """Arguments of `ModelFiles`."""

    bucket: str
    path: str
    """Folder in the bucket."""
    source: str
    """Where the model comes from, for the command that copies it: an id on the Hugging Face hub."""
    draft: bool = False
    """Whether it is a draft model, which takes the tokenizer of the model that it drafts for."""
    bucket_url: Text
    """`WeightsBucket.url`: while it is unknown the bucket is still to be made, and there is nothing to look at."""


class ModelFiles(Resource, module="components", name="ModelFiles"):
    """A model in a bucket, looked at; make the service depend on it.

    Attributes:
        files: How many files the folder holds.
        total_bytes: Their size together.
    """

    files: pulumi.Output[float]
    total_bytes: pulumi.Output[float]

    def __init__(self, name: str, args: ModelFilesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "bucket": args.bucket,
            "path": args.path.strip("/"),
            "source": args.source,
            "stack": pulumi.get_stack(),
            "draft": args.draft,
            "bucket_url": args.bucket_url,
            "files": None,
            "total_bytes": None,
        }
        super().__init__(ModelFilesProvider(), name, props, opts)
