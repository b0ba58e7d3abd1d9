"""Model argument and mounts of a found server -> `model` and `weights` of a stack file. Pure.

Owns which checkpoint of the catalogue a hub id, a folder or a bucket's address means. One that is none of them stays as
it is written: the plan refuses it, and names the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.docker_run import LOCAL_FOLDER, LOCAL_REPAIR
from bezel.conversion.inputs.found_server import Mount, Remark, remark
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel.conversion.settings.model_place import model_place
from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel.planner.vllm.loading import HUB, STREAMER
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word
from bezel_catalog import closest_record, ids_by_hub_id, models

if TYPE_CHECKING:
    from bezel.conversion.inputs.found_server import FoundServer
    from bezel_catalog import Model


@dataclass(slots=True)
class ModelChoice:
    """The checkpoint, and where its files are.

    Attributes:
        name: `bezel:model`.
        record: Of the catalogue; None where it has none.
        weights: `bezel:weights`.
        mount: The bucket's mount that holds the model; None without one.
        remarks: What is to be known.
    """

    name: str
    record: Model | None
    weights: dict[str, Any] = field(default_factory=dict)
    mount: Mount | None = None
    remarks: list[Remark] = field(default_factory=list)


def choose_model(server: FoundServer, argument: str, served: object, project: str, *, name: str = "") -> ModelChoice:
    """The checkpoint that a model argument means.

    Args:
        server: The found server.
        argument: Hub id, folder or `gs://` address.
        served: `served-model-name`, which may name a checkpoint where the folder does not.
        project: Whose default bucket is left out.
        name: The checkpoint, where the caller names it; "" for that which the argument means.

    Raises:
        UserError: There is neither a model argument nor a name.
    """
    if not (argument or name):
        consequence = "vLLM would serve its default, a small test model: which one is meant is not known."
        raise UserError(Problem("model", None, consequence, "name it behind `vllm serve`, or with --model."))
    if not name and OPEN.search(argument):
        consequence = "the input does not say its value: no command is run, and no variable of yours is read."
        raise UserError(Problem("model", argument, consequence, "write the model's hub id in its place."))
    meant = _catalogue_id(argument) or _catalogue_id(_first_text(served)) or argument
    name = name or meant
    record = models().get(name)
    choice = ModelChoice(name, record)
    if record is not None and argument and name != meant:
        choice.remarks.append(remark("changes", "model", argument, f"you name the checkpoint {name} in its place."))
    _choose_place(choice, server, argument, project)
    if record is None:
        choice.remarks.insert(0, _unknown(argument, choice, project))
    for other in server.mounts:
        if other != choice.mount:
            reason = "a stack mounts the bucket that holds its model's folder, and no other."
            repair = "copy the model's files into a folder of it: `bezel weights copy`." if choice.mount is None else ""
            choice.remarks.append(remark("not converted", f"mount {other.path}", other.bucket, reason, repair))
    return choice


def _unknown(argument: str, choice: ModelChoice, project: str) -> Remark:
    """A model that the catalogue does not have, with the command that writes its row."""
    repair = "see those that are: `bezel catalog show models`."
    if near := closest_record(argument, models(), ids_by_hub_id()):
        repair = f"did you mean {near}?"
    elif place := model_place(choice.name, choice.weights, project):
        repair = f"write its row in the project: `bezel catalog add-model {shell_word(place)}`."
    reason = "it is not in the catalogue, so its memory and its speed are not known."
    return remark("not converted", "model", argument, reason, repair)


def _choose_place(choice: ModelChoice, server: FoundServer, argument: str, project: str) -> None:
    """Set where the model's files are read from."""
    if argument.startswith("gs://"):
        bucket, _, path = argument.removeprefix("gs://").partition("/")
        choice.weights = _place(bucket, path, choice.record, project) | {"loading": STREAMER.id}
    elif mount := _mount_of(server.mounts, argument):
        choice.mount = mount
        path = argument.removeprefix(mount.path.rstrip("/")).strip("/")
        choice.weights = _place(mount.bucket, path, choice.record, project)
        if mount.path.rstrip("/") != MOUNT_PATH:
            reason = f"a stack mounts its bucket at {MOUNT_PATH}: arguments with this path get the other one."
            choice.remarks.append(remark("changes", "mount path", mount.path, reason))
    elif argument.startswith(("/", "./", "~", "../")):
        reason = "the image holds it, or a volume that is not converted." if server.on_cloud_run else LOCAL_FOLDER
        choice.remarks.append(remark("not converted", "model", argument, reason, LOCAL_REPAIR))
    elif "://" in argument:
        reason = "a stack reads its model from a bucket of Cloud Storage, or from the hub."
        choice.remarks.append(remark("not converted", "model", argument, reason, LOCAL_REPAIR))
    elif server.on_cloud_run:
        choice.weights = {"loading": HUB.id}
    else:
        reason = "a stack reads it from its bucket: nothing is downloaded from the hub at a start."
        repair = f"copy it there once: `bezel weights copy`; or write bezel:weights: {{loading: {HUB.id}}}."
        choice.remarks.append(remark("changes", "model", argument, reason, repair))
    has_bucket = choice.mount is not None or argument.startswith("gs://")
    if choice.record is not None and choice.record.hub_id is None and not has_bucket:
        choice.weights = unpublished_place(choice.record)
        reason = "no hub has the model: it is the folder of your own copy."
        choice.remarks.append(remark("assumed", "bezel:weights.path", choice.weights["path"], reason))


def _first_text(value: object) -> str:
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else ""


def _catalogue_id(text: str) -> str | None:
    """The id of the checkpoint that has this hub id, id or folder."""
    plain = text.rstrip("/").lower()
    by_hub_id = {hub_id.lower(): each for hub_id, each in ids_by_hub_id().items()}
    if plain in by_hub_id:
        return by_hub_id[plain]
    last = plain.rpartition("/")[2]
    is_folder = plain.startswith(("/", "gs://", "./", "~")) or "/" not in plain
    for each, record in models().items() if is_folder and last else ():
        if last in (each, (record.folder or each).lower().rpartition("/")[2]):
            return each
    return None


def unpublished_place(record: Model) -> dict[str, str]:
    """`bezel:weights` of a model that no hub has: the folder that it was read from, else one of its id."""
    if not record.source.startswith("gs://"):
        return {"path": record.id}
    bucket, _, folder = record.source.removeprefix("gs://").partition("/")
    return {"bucket": bucket, "path": folder}


def _place(bucket: str, path: str, record: Model | None, project: str) -> dict[str, Any]:
    place: dict[str, Any] = {}
    if bucket != f"{project}-models":
        place["bucket"] = bucket
    if path.strip("/") and (record is None or path.strip("/") != record.folder):
        place["path"] = path.strip("/")
    return place


def _mount_of(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    holding = [each for each in mounts if path == each.path or path.startswith(f"{each.path.rstrip('/')}/")]
    return max(holding, key=lambda mount: len(mount.path), default=None)


def moved_paths(value: Any, choice: ModelChoice) -> Any:
    """A value with the paths of the stack's bucket: for the input's mount path, and for the hub id of the draft model.

    A server that reads its model from a bucket is offline: it cannot load a draft model by its hub id.
    """
    if isinstance(value, str):
        return _moved_text(value, choice)
    if isinstance(value, dict):
        return {key: moved_paths(item, choice) for key, item in value.items()}
    return [moved_paths(item, choice) for item in value] if isinstance(value, list) else value


def _moved_text(text: str, choice: ModelChoice) -> str:
    name, equals, path = text.rpartition("=")  # an adapter is NAME=PATH
    old = choice.mount.path.rstrip("/") if choice.mount else ""
    if old and (path == old or path.startswith(f"{old}/")):
        return f"{name}{equals}{MOUNT_PATH}{path.removeprefix(old)}"
    assistant = choice.record.assistant if choice.record else None
    if assistant and text.lower() == assistant.lower() and choice.weights.get("loading") not in (HUB.id, STREAMER.id):
        return f"{MOUNT_PATH}/{assistant.rpartition('/')[2]}"
    return text
