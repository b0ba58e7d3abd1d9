"""Dynamic provider of `ModelFiles`: lists a folder of a bucket, in previews and deploys.

The engine lets a resource check its inputs in both, so a missing model stops a preview already, except while the bucket
is still to be made. The class is pickled into the stack's state by reference: neither it nor this module may be
renamed, and it holds no data. It is apart from the resource so that the process that runs it loads no more than it
needs.
"""

import json
import sys
from typing import Any
from urllib.parse import quote

from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, ReadResult, ResourceProvider

from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel.weights.adapter import ADAPTER_CONFIG, ADAPTER_WEIGHTS, adapter_problems, missing_adapter_parts
from bezel.weights.adapter_tensors import BaseModel, base_warning, header_length, tensor_problems
from bezel.weights.layout import missing_parts
from bezel_base.errors import Problem, caused_by
from bezel_base.text.shell import shell_word
from bezel_components.base.dynamic import DeployError

_LOCATION = ("bucket", "path")
_PREVIEW_SECONDS = 5.0
"""How long a preview may wait for Cloud Storage; after that it continues with a warning."""
_DEPLOY_SECONDS = 30.0


class ModelFilesError(DeployError):
    """The bucket holds no complete model, or could not be read."""


class ModelFilesProvider(ResourceProvider):
    """Provider of `ModelFiles`. Outputs: files, total_bytes.

    Inputs: bucket, path, source, stack, draft, adapter_rank, base_source, base_hidden_size, base_layers, bucket_url.
    """

    serialize_as_secret_always = False

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Check the folder, in previews too. An unreachable bucket is a warning here: a preview must work offline."""
        if not all(isinstance(news.get(key), str) for key in (*_LOCATION, "source", "bucket_url")):
            return CheckResult(news, [])
        try:
            _inspect(news, _PREVIEW_SECONDS)
        except ModelFilesError as error:
            return CheckResult(news, [CheckFailure("path", str(error))])
        except RestError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: {_unreadable(_location(news), error)}\n")
        return CheckResult(news, [])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Replace the resource for another folder; nothing else is a change."""
        changed = [key for key in _LOCATION if _olds.get(key) != _news.get(key)]
        return DiffResult(changes=bool(changed), replaces=changed)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Check again, with an error in place of the warning.

        Raises:
            ModelFilesError: There is no complete model, or Cloud Storage could not be read.
        """
        try:
            files = _inspect(props, _DEPLOY_SECONDS)
        except RestError as error:
            raise ModelFilesError(_unreadable(_location(props), error)) from None
        return CreateResult(_location(props), {**props, **_figures(files)})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record at a refresh what was copied or deleted by hand; the next deploy checks a missing model again."""
        try:
            files = _inspect(props, _DEPLOY_SECONDS)
        except ModelFilesError:
            return ReadResult("", {})
        except RestError as error:
            raise ModelFilesError(_unreadable(_location(props), error)) from None
        return ReadResult(id_, {**props, **_figures(files)})


def _inspect(props: dict[str, Any], seconds: float) -> dict[str, int]:
    """Size of each file of the model, by its name in the folder.

    Raises:
        ModelFilesError: The model is incomplete.
        RestError: Cloud Storage could not be read.
    """
    bucket, location = str(props["bucket"]), _location(props)
    # The state of an older deploy does not name its stack.
    command = copy_command(str(props["source"]), location, str(props.get("stack", "STACK")))
    folder = f"{props['path']}/" if props["path"] else ""
    rank = props.get("adapter_rank")
    try:
        files = _list(bucket, folder, seconds)
    except ApiError as error:
        if error.status == 404:
            raise ModelFilesError(
                Problem(
                    f"bucket {bucket}",
                    "does not exist",
                    f"Cloud Run could not mount the weights at {location}, and the service would not start.",
                    "correct the bucket's name, or let the stack create it (weights: {create: true}) and copy the "
                    f"model with `{command}`.",
                )
            ) from None
        raise
    if rank is not None:
        if props["source"] and props.get("stack"):
            # With a source of its own it would be the model that is copied.
            command = f".venv/bin/bezel weights copy {shell_word(str(props['stack']))}"
        _check_adapter(props, files, seconds, command)
        return files
    problems = missing_parts(files, draft=bool(props.get("draft")))
    if problems:
        raise ModelFilesError(
            Problem(
                location,
                "not a complete model",
                f"{'; '.join(problems)}; vLLM would exit during its start, and Cloud Run would report only that "
                "nothing listens on the port, after the GPU was paid for.",
                f"copy the model with `{command}`, then run the same command again.",
            )
        )
    return files


def _check_adapter(props: dict[str, Any], files: dict[str, int], seconds: float, command: str) -> None:
    bucket, folder = str(props["bucket"]), f"{props['path']}/" if props["path"] else ""
    problems = missing_adapter_parts(files)
    if not problems:
        config = _read(bucket, f"{folder}{ADAPTER_CONFIG}", seconds)
        problems = adapter_problems(config, int(props["adapter_rank"]))
        if not problems and props.get("base_hidden_size") and (size := files.get(ADAPTER_WEIGHTS)):
            base = BaseModel(str(props["base_source"]), int(props["base_hidden_size"]), int(props["base_layers"]))
            header = _read_header(bucket, f"{folder}{ADAPTER_WEIGHTS}", size, seconds)
            problems = tensor_problems(header, json.loads(config), base)
            if warning := base_warning(json.loads(config), base):
                sys.stderr.write(f"warning: {_location(props)}: {warning}\n")
    if problems:
        raise ModelFilesError(
            Problem(
                _location(props),
                "not an adapter that the server can load",
                f"{'; '.join(problems)}; vLLM loads it after the model and would exit, after the GPU was paid for.",
                f"copy the adapter with `{command}`, or correct lora-modules and max-lora-rank, then run the same "
                "command again.",
            )
        )


def copy_command(source: str, location: str, stack: str) -> str:
    """Return the command that copies a model into a bucket.

    Args:
        source: Id on the Hugging Face hub, e.g. `google/gemma-4-12b-it`; "" for files that only the user has.
        location: `gs://BUCKET/PATH`.
        stack: The stack file's stack that serves the model; "" where no stack file has it.
    """
    if source and not stack:
        folder = source.rpartition("/")[2]
        download = f"hf download {shell_word(source)} --local-dir {shell_word(folder)}"
        return f"{download} && gcloud storage cp --recursive {shell_word(folder)}/* {shell_word(location + '/')}"
    if not source:
        return f"gcloud storage cp --recursive FOLDER_WITH_YOUR_COPY/* {shell_word(location + '/')}"
    return f".venv/bin/bezel weights copy {shell_word(stack)} --from {shell_word(f'hf:{source}')}"


def _read(bucket: str, name: str, seconds: float) -> bytes:
    """The content of a small object, at most _LARGEST_CONFIG bytes (Cloud Storage JSON API, objects.get)."""
    url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    with GoogleClient(timeout_seconds=seconds, deadline_seconds=seconds) as client:
        return client.send("GET", url, params={"alt": "media"}).content


def _read_header(bucket: str, name: str, size: int, seconds: float) -> bytes:
    """The header of a file of safetensors, b"" where it has none."""
    url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    with GoogleClient(timeout_seconds=seconds, deadline_seconds=seconds) as client:
        start = client.send("GET", url, params={"alt": "media"}, byte_range=(0, 8)).content[:8]
        length = header_length(start, size)
        if not length:
            return b""
        return client.send("GET", url, params={"alt": "media"}, byte_range=(8, 8 + length)).content[:length]


def _list(bucket: str, folder: str, seconds: float) -> dict[str, int]:
    """List the objects in a folder itself, not below it (Cloud Storage JSON API, objects.list)."""
    try:
        url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o"
    except ValueError as error:  # an override of the endpoint to an address that no token may be sent to
        raise ModelFilesError(str(error)) from None
    query = {"prefix": folder, "delimiter": "/", "fields": "items(name,size),nextPageToken"}
    with GoogleClient(timeout_seconds=seconds, deadline_seconds=seconds) as client:
        return {
            name: int(item.get("size", 0))
            for item in client.pages(url, "items", params=query)
            if (name := str(item["name"]).removeprefix(folder))
        }


def _unreadable(location: str, error: RestError) -> Problem:
    return caused_by(
        error,
        location,
        "it is unknown whether it holds a model, as it cannot be listed",
        "make Cloud Storage reachable with credentials that may list the bucket (roles/storage.objectViewer), then run "
        "the same command again.",
    )


def _location(props: dict[str, Any]) -> str:
    return f"gs://{props['bucket']}/{props['path']}".rstrip("/")


def _figures(files: dict[str, int]) -> dict[str, int]:
    return {"files": len(files), "total_bytes": sum(files.values())}
