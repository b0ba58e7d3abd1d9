"""Models of Vertex AI's registry as results: one question for each project and region, a refusal is a note."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.rest import ApiError, RestError
from bezel.rest.vertex_ai import RegisteredModel, registered_models
from bezel_base.text.shell import shell_word

_AT_ONCE = 8
_API = "aiplatform.googleapis.com"
_LONGEST = 200


class RegistryModel(Result):
    """A registered model."""

    project: str
    region: str
    name: str = Field(description="id in the registry")
    display_name: str
    version: str
    artifact_uri: str | None = Field(description="folder of its files; null where it names none")
    source: str | None = Field(description="e.g. MODEL_GARDEN or CUSTOM, as Vertex AI states it")
    updated: str = Field(description="RFC 3339")


def registry_of(context: Context, places: Sequence[tuple[str, str]]) -> tuple[list[RegistryModel], list[str]]:
    """The registered models of projects in regions, and why some registries are unknown."""
    if not places:
        return [], []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda place: _models_of_region(context, *place), places))
    return [model for models, _ in answers for model in models], [note for _, notes in answers for note in notes]


def _models_of_region(context: Context, project: str, region: str) -> tuple[list[RegistryModel], list[str]]:
    try:
        models = registered_models(context.google, project, region)
    except ApiError as error:
        enable = (
            f"; `gcloud services enable aiplatform.googleapis.com --project={shell_word(project)}`"
            if error.status == 403 and not error.is_disabled
            else ""
        )
        return [], [f"the registry of {project} in {region} is unknown: {error.status} {error.because}{enable}"]
    except RestError as error:
        return [], [f"the registry of {project} in {region} is unknown: {error}"]
    return [_of(model, project, region) for model in models], []


def _of(model: RegisteredModel, project: str, region: str) -> RegistryModel:
    return RegistryModel(
        project=project,
        region=region,
        name=model.name.rpartition("/")[2],
        display_name=clean_text(model.display_name, _LONGEST),
        version=model.version,
        artifact_uri=clean_text(model.artifact_uri, _LONGEST) or None,
        source=model.source or None,
        updated=model.updated,
    )
