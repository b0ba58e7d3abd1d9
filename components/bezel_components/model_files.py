"""Check that a bucket holds a complete model before anything is paid for that needs it.

A LoRA adapter of the server is checked in the same way. `ModelFiles` makes nothing and deletes nothing: it is the step
between the bucket and the service at which a deploy stops when the weights were never copied, or only in part. Leaves
the listing to `bezel_components.providers.model_files`, the definition of a complete model to `bezel.weights.layout`,
and the fit of weights and arguments to the plan: it reads no file but the configuration of an adapter.

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

from bezel_components.base.arguments import ComponentArgs, Text
from bezel_components.base.check_resource import CheckResource
from bezel_components.providers.model_files import ModelFilesProvider


class ModelFilesArgs(ComponentArgs):
    """Arguments of `ModelFiles`."""

    bucket: Text
    """Name of the bucket; while it is unknown there is nothing to check."""
    path: str
    """Folder in the bucket."""
    source: str
    """Origin of the model, for the command that copies it: an id on the Hugging Face hub."""
    draft: bool = False
    """Whether it is a draft model, which takes the tokenizer of the model that it drafts for."""
    adapter_rank: int | None = None
    """Largest rank that the server takes, for a LoRA adapter; None for a model."""
    base_source: str = ""
    """Id on the hub of the model that an adapter is loaded beside; "" for none, or for a model."""
    base_hidden_size: int = 0
    """Hidden size of that model; 0 where an adapter's tensors are not to be compared with it."""
    base_layers: int = 0
    """Number of layers of that model."""
    stack: str = ""
    """Stack of the stack file that names the model, for the command that copies it; "" where no stack file does."""
    bucket_url: Text
    """`WeightsBucket.url`: while it is unknown the bucket is still to be made, and there is nothing to check."""


class ModelFiles(CheckResource, module="components", name="ModelFiles"):
    """A checked model in a bucket; make the service depend on it.

    Attributes:
        files: Number of files in the folder.
        total_bytes: Their total size.
    """

    files: pulumi.Output[float]
    total_bytes: pulumi.Output[float]

    def __init__(self, name: str, args: ModelFilesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "bucket": args.bucket,
            "path": args.path.strip("/"),
            "source": args.source,
            "stack": args.stack,
            "draft": args.draft,
            **({} if args.adapter_rank is None else {"adapter_rank": args.adapter_rank, **_base(args)}),
            "bucket_url": args.bucket_url,
            "files": None,
            "total_bytes": None,
        }
        super().__init__(ModelFilesProvider(), name, props, opts)


def _base(args: ModelFilesArgs) -> dict[str, str | int]:
    if not args.base_hidden_size:
        return {}
    return {
        "base_source": args.base_source,
        "base_hidden_size": args.base_hidden_size,
        "base_layers": args.base_layers,
    }
