"""The hub's stand-in: models of the catalogue, and repositories that were put there."""

import asyncio
import json
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient, Response
from starlette.applications import Starlette

from bezel_localcloud.core.paths import HUB_PREFIX, Paths
from bezel_localcloud.services.model_hub.api import routes
from bezel_localcloud.services.model_hub.stored import commit_of, find_repository, put_repository

NAME, COMMIT = "acme/Tiny-Llama", "d" * 40
FILES = {"config.json": b'{"model_type": "llama"}', "model.safetensors": bytes(range(20))}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "cloud")
    made.create()
    return made


def get(paths: Paths, path: str, **headers: str) -> Response:
    async def answer() -> Response:
        transport = ASGITransport(Starlette(routes=routes(paths)))
        async with AsyncClient(transport=transport, base_url="http://localcloud") as client:
            return await client.get(f"{HUB_PREFIX}{path}", headers=headers)

    return asyncio.run(answer())


@pytest.mark.parametrize("revision", ["main", "v1", "feature/x", COMMIT])
def test_repository_is_listed_at_each_of_its_revisions(paths: Paths, revision: str) -> None:
    put_repository(paths, NAME, FILES, revisions=(COMMIT, "v1", "feature/x"))
    quoted = revision.replace("/", "%2F")
    assert get(paths, f"/api/models/{NAME}/revision/{quoted}").json()["sha"] == COMMIT
    tree = get(paths, f"/api/models/{NAME}/tree/{quoted}").json()
    assert {row["path"]: row["size"] for row in tree} == {name: len(content) for name, content in FILES.items()}
    assert get(paths, f"/{NAME}/resolve/{quoted}/config.json").content == FILES["config.json"]


def test_part_of_a_file_is_read_by_its_range(paths: Paths) -> None:
    put_repository(paths, NAME, FILES)
    part = get(paths, f"/{NAME}/resolve/main/model.safetensors", range="bytes=3-5")
    assert (part.status_code, part.content) == (206, bytes([3, 4, 5]))
    assert part.headers["x-repo-commit"] == commit_of(NAME)


def test_unknown_repository_and_revision_are_refused(paths: Paths) -> None:
    put_repository(paths, NAME, FILES)
    other = get(paths, "/api/models/acme/other/revision/main")
    assert (other.status_code, other.headers["x-error-code"]) == (401, "RepoNotFound")
    revision = get(paths, f"/api/models/{NAME}/revision/v9")
    assert (revision.status_code, revision.headers["x-error-code"]) == (404, "RevisionNotFound")
    file = get(paths, f"/{NAME}/resolve/v9/config.json")
    assert (file.status_code, file.headers["x-error-code"]) == (404, "RevisionNotFound")
    file = get(paths, f"/{NAME}/resolve/main/nothing.json")
    assert (file.status_code, file.headers["x-error-code"]) == (404, "EntryNotFound")


def test_models_of_the_catalogue_are_there_without_being_put(paths: Paths) -> None:
    answer = get(paths, "/google/gemma-4-12B-it/resolve/main/config.json")
    assert json.loads(answer.content)["model_type"].startswith("gemma4")


def test_second_call_with_the_same_files_changes_nothing(paths: Paths) -> None:
    assert put_repository(paths, NAME, FILES, revisions=(COMMIT,))
    assert not put_repository(paths, NAME, FILES, revisions=(COMMIT,))
    assert put_repository(paths, NAME, {**FILES, "config.json": b"{}"}, revisions=(COMMIT,))
    stored = find_repository(paths, NAME)
    assert stored is not None
    assert (stored.commit, stored.files["config.json"]) == (COMMIT, b"{}")


@pytest.mark.parametrize("name", ["tiny", "../x", "acme/..", "acme/a/b", ""])
def test_name_of_no_repository_is_refused(paths: Paths, name: str) -> None:
    with pytest.raises(ValueError, match="no repository has the name"):
        put_repository(paths, name, FILES)


def test_new_project_has_no_repository(paths: Paths) -> None:
    put_repository(paths, NAME, FILES)
    paths.delete_contents()
    assert find_repository(paths, NAME) is None
