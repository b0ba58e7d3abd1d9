"""Looks whether a bucket holds a model before anything is paid for that would need it.

`ModelFiles` makes nothing and deletes nothing: it is the step between the bucket and the service at which a deploy
stops when the weights were never copied, or only half. It looks at every preview and every deploy (the engine lets a
resource check its inputs in both), except while the bucket is still to be made.

Leaves out the files' contents: whether the weights fit the arguments is the plan's question. The rules of what a model
consists of are in `model_layout`.

The provider class is pickled into the stack's state by reference, so neither it nor this module may be renamed, and it
holds nothing.

Example:
    ```python
    model = ModelFiles(
        "model",
        ModelFilesArgs(bucket_url=weights.url, bucket=weights.bucket, path="gemma-4-12b-it",
                       source="google/gemma-4-12b-it"),
        opts=pulumi.ResourceOptions(depends_on=[weights]),
    )
    ```
"""

import sys
from typing import Any
from urllib.parse import quote

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, ReadResult, Resource, ResourceProvider

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from components.arguments import ComponentArgs, Text
from components.model_layout import missing_parts, no_bucket, not_a_model, unreachable

_PLACE = ("bucket", "path")
_PREVIEW_SECONDS = 5.0
"""How long a preview may wait for Cloud Storage; longer, and it goes on with a warning."""
_DEPLOY_SECONDS = 30.0


class ModelFilesArgs(ComponentArgs):
    """Arguments of `ModelFiles`."""

    bucket: str
    path: str
    """Folder in the bucket."""
    source: str
    """Where the model comes from, for the command that copies it: an id on the Hugging Face hub."""
    bucket_url: Text
    """`WeightsBucket.url`: while it is unknown the bucket is still to be made, and there is nothing to look at."""


class ModelFilesError(Exception):
    """The bucket holds no whole model, or nobody could look; the text says what to do."""


class ModelFilesProvider(ResourceProvider):
    """What the engine calls. Properties come and go by name: bucket, path, source, bucket_url; files, total_bytes."""

    serialize_as_secret_always = False

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Look at the folder, in previews too. An unreachable bucket is a warning here: a preview must work offline."""
        if not all(isinstance(news.get(key), str) for key in (*_PLACE, "source", "bucket_url")):
            return CheckResult(news, [])
        try:
            _inspect(news, _PREVIEW_SECONDS)
        except ModelFilesError as error:
            return CheckResult(news, [CheckFailure("path", str(error))])
        except RestError as error:
            # The plugin has no line to the engine's log; what it writes here the engine shows.
            sys.stderr.write(f"warning: {unreachable(_location(news), str(error))}\n")
        return CheckResult(news, [])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Another place is another resource; nothing else is a change."""
        moved = [key for key in _PLACE if _olds.get(key) != _news.get(key)]
        return DiffResult(changes=bool(moved), replaces=moved)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Look again, now for good.

        Raises:
            ModelFilesError: There is no whole model, or Cloud Storage could not be asked.
        """
        try:
            files = _inspect(props, _DEPLOY_SECONDS)
        except RestError as error:
            raise ModelFilesError(unreachable(_location(props), str(error))) from None
        return CreateResult(_location(props), {**props, **_figures(files)})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """See at a refresh what was copied or deleted by hand; a model that is gone is to be looked for again."""
        try:
            files = _inspect(props, _DEPLOY_SECONDS)
        except ModelFilesError:
            return ReadResult("", {})
        except RestError as error:
            raise ModelFilesError(unreachable(_location(props), str(error))) from None
        return ReadResult(id_, {**props, **_figures(files)})


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
            "bucket_url": args.bucket_url,
            "files": None,
            "total_bytes": None,
        }
        super().__init__(ModelFilesProvider(), name, props, opts)


def _inspect(props: dict[str, Any], seconds: float) -> dict[str, int]:
    """Size of each file of the model, by its name in the folder.

    Raises:
        ModelFilesError: It is not a whole model.
        RestError: Cloud Storage did not say.
    """
    bucket, location, source = str(props["bucket"]), _location(props), str(props["source"])
    try:
        files = _list(bucket, f"{props['path']}/" if props["path"] else "", seconds)
    except ApiError as error:
        if error.status == 404:
            raise ModelFilesError(no_bucket(bucket, location, source)) from None
        raise
    problems = missing_parts(files)
    if problems:
        raise ModelFilesError(not_a_model(location, source, problems))
    return files


def _list(bucket: str, folder: str, seconds: float) -> dict[str, int]:
    """Ask Cloud Storage (JSON API, objects.list) for what lies in a folder itself, not below it."""
    try:
        url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o"
    except ValueError as error:  # an override of the address that no token may be sent to
        raise ModelFilesError(str(error)) from None
    query = {"prefix": folder, "delimiter": "/", "fields": "items(name,size),nextPageToken"}
    with GoogleClient(timeout_seconds=seconds, deadline_seconds=seconds) as client:
        return {
            name: int(item.get("size", 0))
            for item in client.pages(url, "items", params=query)
            if (name := str(item["name"]).removeprefix(folder))
        }


def _location(props: dict[str, Any]) -> str:
    return f"gs://{props['bucket']}/{props['path']}".rstrip("/")


def _figures(files: dict[str, int]) -> dict[str, int]:
    return {"files": len(files), "total_bytes": sum(files.values())}
