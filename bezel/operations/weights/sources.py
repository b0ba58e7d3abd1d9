"""Source of a copy by its name: a model on the Hugging Face hub, a folder of a bucket, or a model of Model Garden.

`hf:OWNER/NAME[@REVISION]`, `gs://BUCKET/PATH`, `garden:PUBLISHER/MODEL@VERSION`. Owns which folder a publisher model's
weights are read from: the first of those that it names and that this identity may list. Leaves the bytes to
`bezel.weights`.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from bezel.operations.context import Context
from bezel.operations.weights.hub_token import hub_token
from bezel.planner import AnyPlan
from bezel.rest import RestError
from bezel.rest.vertex_ai import garden_folders
from bezel.weights.bucket import Bucket
from bezel.weights.copy import BucketSource, HubSource, ModelSource
from bezel.weights.hub import Hub, Repository
from bezel.weights.progress import Progress
from bezel.weights.retry import Watch
from bezel.weights.transfer import Journal, Transfer
from bezel_base.errors import Problem, UserError, one_line
from bezel_base.state_folder import state_folder

HUB, GARDEN, CLOUD_STORAGE = "hf:", "garden:", "gs://"
_GARDEN_MODEL = re.compile(r"([a-z0-9][a-z0-9-]{0,62})/([A-Za-z0-9][\w.-]{0,126}(?:@[\w.-]{1,126})?)")
_FORMS = "hf:OWNER/NAME[@REVISION], gs://BUCKET/PATH or garden:PUBLISHER/MODEL@VERSION"


@dataclass(frozen=True)
class Opened:
    """A source that can be read.

    Attributes:
        shown: Its name with what was resolved, e.g. the commit, or the bucket of a publisher model.
        content: What identifies its content: the commit, or a digest of names, sizes and generations.
        model: Its files.
    """

    shown: str
    content: str
    model: ModelSource


@contextmanager
def open_source(
    context: Context, plan: AnyPlan, origin: str, target: Bucket, watch: Watch, progress: Progress
) -> Iterator[Opened]:
    """Open a source.

    Args:
        context: The context.
        plan: Plan of the stack that the model is for, whose secret has the hub's token.
        origin: Name of the source; without a prefix a model of the hub.
        target: The bucket to copy into.
        watch: The deadline.
        progress: The display of the progress.

    Raises:
        UserError: The name has none of the forms, or no such model can be read.
        RestError: A request failed.
    """
    journal = Journal(state_folder("uploads", context.environ))
    if origin.startswith(GARDEN):
        folder = _garden_folder(context, origin, watch)
        with _of_bucket(folder, target, journal, watch, progress, label=origin) as garden_source:
            yield Opened(f"{origin} ({folder})", garden_source.content, garden_source.model)
    elif origin.startswith(CLOUD_STORAGE):
        with _of_bucket(origin, target, journal, watch, progress) as garden_source:
            yield garden_source
    else:
        repository = Repository.of(origin.removeprefix(HUB))
        with closing(Hub(watch, lambda: hub_token(context, plan.secrets, plan.project), context.environ)) as hub:
            commit, files = hub.files(repository)
            source = HubSource(Transfer(hub, repository, commit, target, journal, watch, progress), files)
            yield Opened(f"{repository} (commit {commit[:12]})", commit, source)


@contextmanager
def _of_bucket(
    address: str, target: Bucket, journal: Journal, watch: Watch, progress: Progress, *, label: str = ""
) -> Iterator[Opened]:
    name, _, path = address.removeprefix(CLOUD_STORAGE).strip("/").partition("/")
    with closing(Bucket(name, watch)) as other:
        stored = [each for each in other.objects(f"{path}/" if path else "") if not each.name.endswith("/")]
        listed = "\n".join(sorted(f"{each.name} {each.size} {each.generation}" for each in stored))
        digest = hashlib.sha256(listed.encode()).hexdigest()
        source = BucketSource(other, path, target, journal, watch, progress, label or address)
        yield Opened(address, f"sha256:{digest}", source)


def _garden_folder(context: Context, origin: str, watch: Watch) -> str:
    """The folder of a publisher model's weights that can be listed."""
    match = _GARDEN_MODEL.fullmatch(origin.removeprefix(GARDEN))
    if match is None:
        repair = "write e.g. garden:google/gemma4@gemma-4-12b-it, as `gcloud ai model-garden models list` names it."
        raise UserError(Problem("--from", origin, f"it has none of the forms {_FORMS}.", repair))
    folders = garden_folders(context.google, match[1], match[2])
    if not folders:
        why = "Model Garden has no such model" if folders is None else "it names no folder of Cloud Storage"
        repair = "choose another version (`gcloud ai model-garden models list`), or copy from the hub."
        raise UserError(Problem("--from", origin, f"{why}, so nothing was copied.", repair))
    refused = []
    for folder in folders:
        name, _, path = folder.removeprefix(CLOUD_STORAGE).partition("/")
        with closing(Bucket(name, watch)) as bucket:
            try:
                if bucket.objects(f"{path}/"):
                    return folder
                refused.append(f"{folder} is empty")
            except RestError as error:
                refused.append(f"{folder}: {one_line(error)}")
    consequence = f"none of its folders can be read, so nothing was copied: {'; '.join(refused)}"
    repair = "accept the model's terms in Model Garden, or copy from the hub."
    raise UserError(Problem("--from", origin, consequence, repair))
