"""Vertex AI: models of a project's registry, and the weights that a publisher model of Model Garden names.

Owns the requests and the parsing of their responses. Leaves out copying weights (`bezel.weights`).

Source: the discovery document of Vertex AI v1, revision 20261106. A publisher model has deployment options; each names
its weights by `artifactUri`, or by `--model=gs://…` in its container's arguments (as of Gemma 4, 2026).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.rest import ApiError, GoogleClient
from bezel.rest.endpoints import regional_endpoint

# Only Vertex AI reads the first; the second has the same folders, and everyone reads it. Seen for Gemma 3 and 4, 2026.
_RESTRICTED, _PUBLIC = "gs://vertex-model-garden-restricted-us/", "gs://vertex-model-garden-public-us/"
_ARGUMENT = re.compile(r"--model(?:=|\s+)(gs://\S+)")
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}/[^\s?#]+")
_GARDEN_REGION = "us-central1"
"""Region whose endpoint is asked for publisher models; they are the same in all."""


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model of the registry: its resource name, the folder of its files ("" for none), and RFC 3339 times."""

    name: str
    display_name: str
    version: str
    artifact_uri: str
    source: str
    updated: str


def registered_models(client: GoogleClient, project: str, region: str) -> list[RegisteredModel]:
    """Return the models of a project's registry in a region.

    Raises:
        RestError: The request failed.
    """
    url = f"{regional_endpoint('VERTEX_AI', region)}projects/{project}/locations/{region}/models"
    return [
        RegisteredModel(
            name=str(row.get("name") or ""),
            display_name=str(row.get("displayName") or ""),
            version=str(row.get("versionId") or ""),
            artifact_uri=str(row.get("artifactUri") or ""),
            source=str((row.get("modelSourceInfo") or {}).get("sourceType") or ""),
            updated=str(row.get("updateTime") or ""),
        )
        for row in client.pages(url, "models", params={"pageSize": 100})
    ]


def garden_folders(client: GoogleClient, publisher: str, model: str) -> list[str] | None:
    """Return the folders of a publisher model's weights, the readable ones first; None where there is no such model.

    Args:
        client: The client that sends the request.
        publisher: E.g. `google`.
        model: E.g. `gemma4@gemma-4-12b-it`.

    Raises:
        RestError: The request failed.
    """
    url = f"{regional_endpoint('VERTEX_AI', _GARDEN_REGION)}publishers/{publisher}/models/{model}"
    try:
        return folders_of(client.get(url))
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def folders_of(model: Mapping[str, Any]) -> list[str]:
    """The folders that a publisher model names, each once; a restricted one after its public twin. Pure."""
    folders = [uri for uri in _named_uris(model) if _FOLDER.fullmatch(uri)]
    public = [uri.replace(_RESTRICTED, _PUBLIC, 1) for uri in folders]
    return list(dict.fromkeys((*public, *folders)))


def _named_uris(model: Mapping[str, Any]) -> Iterator[str]:
    actions = model.get("supportedActions") or {}
    options = [actions.get("deploy") or {}, *((actions.get("multiDeployVertex") or {}).get("multiDeployVertex") or ())]
    for option in options:
        if option.get("artifactUri"):
            yield str(option["artifactUri"]).rstrip("/")
        container = option.get("containerSpec") or {}
        command_line = " ".join(
            str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))
        )
        yield from (uri.rstrip("/") for uri in _ARGUMENT.findall(command_line))
