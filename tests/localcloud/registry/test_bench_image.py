"""`bezel bench image`: built once for each version of the code, found by its digest, refused with the repair."""

import re
from pathlib import Path

import pytest

from bezel.bench_jobs.job_image import DOCKERFILE, ImageRepository, image_of_this_code
from bezel.cli.main import main
from bezel_base.errors import UserError
from bezel_localcloud import control
from localcloud_support.client import PARENT, REGION
from tests.support.bench_jobs.container_engine import calls, install

ROOT = Path(__file__).parents[3]
HOST = f"{REGION}-docker.pkg.dev"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"


@pytest.fixture
def repository(cloud, endpoint, monkeypatch):
    """An empty repository, and the variables that name its cloud."""
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    cloud.finish("artifactregistry/v1", cloud.post(REPOSITORIES, {"format": "DOCKER"}, repository_id="images"))
    yield ImageRepository.parse(f"{HOST}/bezel-local/images")
    cloud.delete(f"{REPOSITORIES}/images")


@pytest.fixture
def engine(cloud, tmp_path, monkeypatch):
    """A function that puts a container engine on PATH, alone, and returns its folder."""

    def make(**how):
        folder = install(tmp_path / "engine", cloud.http.headers["Authorization"].removeprefix("Bearer "), **how)
        monkeypatch.setenv("PATH", str(folder))
        return folder

    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return make


def refusal(repository, folder=ROOT):
    with pytest.raises(UserError) as refused:
        image_of_this_code(repository, folder, lambda _: None)
    return str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["docker", "podman"])
def test_the_image_is_built_once_and_named_by_its_digest(cloud, repository, engine, capsys, name):
    folder, notes = engine(name=name), []
    image = image_of_this_code(repository, ROOT, notes.append)
    assert re.fullmatch(rf"{HOST}/bezel-local/images/bezel-bench@sha256:[0-9a-f]{{64}}", image)
    assert calls(folder) == ["info", "build", "push"]
    (version,) = cloud.get(f"{REPOSITORIES}/images/packages/bezel-bench/versions").json()["versions"]
    assert version["name"].rpartition("/")[2] == image.partition("@")[2]
    assert main(["bench", "image", f"{HOST}/bezel-local/images"]) == 0
    assert capsys.readouterr().out == f"{image}\n"
    assert calls(folder) == ["info", "build", "push"]


@pytest.mark.slow
def test_without_a_working_engine_the_command_says_which_were_tried(repository, engine):
    text = refusal(repository)
    assert "docker is not on PATH; podman is not on PATH" in text
    assert "Repair: start Docker or Podman" in text
    engine(fails="info")
    assert "docker does not work: info is broken" in refusal(repository)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "repair"),
    [
        ("build", "base image and PyPI must be reachable"),
        (
            "push",
            f"log docker in: gcloud auth configure-docker {HOST}; your account needs roles/artifactregistry.writer",
        ),
    ],
)
def test_a_failed_step_is_shown_with_its_output_and_a_repair(repository, engine, command, repair):
    engine(fails=command)
    text = refusal(repository)
    assert f"`docker {command}` failed with status 1:\n" in text
    assert "line one" in text
    assert repair in text


@pytest.mark.slow
def test_a_missing_repository_or_clone_is_reported_before_a_build(repository, engine, tmp_path):
    folder = engine()
    missing = refusal(ImageRepository.parse(f"{HOST}/bezel-local/absent"))
    assert "it does not exist" in missing
    assert f"gcloud artifacts repositories create absent --repository-format docker --location {REGION}" in missing
    assert f"{DOCKERFILE} is missing" in refusal(repository, tmp_path)
    assert calls(folder) == []


@pytest.mark.parametrize(
    "text", ["", "us-east4-docker.pkg.dev/p", "docker.io/a/b", f"{HOST}/p/r/image", f"{HOST}/p/r:1"]
)
def test_a_text_that_names_no_repository_is_refused(text):
    with pytest.raises(UserError, match=r"give LOCATION-docker\.pkg\.dev/PROJECT/REPOSITORY"):
        ImageRepository.parse(text)
    assert ImageRepository.parse(f"{HOST}/p-1/r").resource == f"projects/p-1/locations/{REGION}/repositories/r"
