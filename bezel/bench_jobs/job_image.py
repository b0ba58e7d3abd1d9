"""Image of a load job's tasks: found in Artifact Registry, or built and pushed by the container engine of this machine.

Owns the tag, the look-up and the two commands. The tag names the version and the digest of the engine's sources, so
that an image of this very code is built once, by any machine. Leaves out the image's contents
(packages/bench/bezel_bench/Dockerfile) and the engine's login.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bezel.bench_jobs.cloud_run_jobs import unless_missing
from bezel.rest import GoogleClient, endpoint
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word
from bezel_bench.distributed import protocol

NAME: Final = "bezel-bench"
DOCKERFILE: Final = Path("packages/bench/bezel_bench/Dockerfile")
_ENGINES: Final = ("docker", "podman")
_REPOSITORY = re.compile(
    r"(?P<location>[a-z][a-z0-9-]*)-docker\.pkg\.dev/(?P<project>[a-z0-9.:-]+)/(?P<name>[a-z0-9-]+)"
)
_LINES = 12  # of a failed command's output


@dataclass(frozen=True)
class ImageRepository:
    """A repository of Artifact Registry.

    Attributes:
        host: `LOCATION-docker.pkg.dev`.
        location: Its location.
        project: Its project.
        name: Its id.
    """

    host: str
    location: str
    project: str
    name: str

    @staticmethod
    def parse(text: str) -> "ImageRepository":
        """Return the repository that a text such as "us-east4-docker.pkg.dev/acme/tools" names.

        Raises:
            UserError: It names none.
        """
        match = _REPOSITORY.fullmatch(text)
        if match is None:
            consequence = "the image could be pushed nowhere."
            raise UserError(
                Problem("repository", text, consequence, "give LOCATION-docker.pkg.dev/PROJECT/REPOSITORY.")
            )
        return ImageRepository(
            f"{match['location']}-docker.pkg.dev", match["location"], match["project"], match["name"]
        )

    @property
    def image(self) -> str:
        """Reference of the image without a tag."""
        return f"{self.host}/{self.project}/{self.name}/{NAME}"

    @property
    def resource(self) -> str:
        """Its resource name."""
        return f"projects/{self.project}/locations/{self.location}/repositories/{self.name}"


def image_of_this_code(repository: ImageRepository, clone: Path, show: Callable[[str], None]) -> str:
    """Return the reference, by digest, of the image of this code; build and push it if the repository lacks it.

    Args:
        repository: Where it is.
        clone: Folder with the Dockerfile and everything that it copies.
        show: Takes progress messages.

    Raises:
        UserError: There is no such repository, no engine to build with, or the build or the push failed.
    """
    tag = f"{version('bezel')}-{protocol.code()}"
    with GoogleClient() as google:
        if unless_missing(lambda: google.get(f"{endpoint('ARTIFACT_REGISTRY')}{repository.resource}")) is None:
            create = (
                f"gcloud artifacts repositories create {shell_word(repository.name)} --repository-format docker "
                f"--location {shell_word(repository.location)} --project {shell_word(repository.project)}"
            )
            raise UserError(Problem("repository", repository.resource, "it does not exist.", f"create it: {create}"))
        if digest := _digest(google, repository, tag):
            show(f"{repository.image}:{tag} exists")
            return f"{repository.image}@{digest}"
        _build(f"{_pushed_to(repository)}:{tag}", repository, clone, show)
        digest = _digest(google, repository, tag)
    if not digest:
        consequence = f"Artifact Registry has no tag {tag}, although the push succeeded."
        raise UserError(Problem("image", repository.image, consequence, "run the command again."))
    return f"{repository.image}@{digest}"


def _digest(google: GoogleClient, repository: ImageRepository, tag: str) -> str:
    """Digest that a tag points to, "" if there is no such tag."""
    url = f"{endpoint('ARTIFACT_REGISTRY')}{repository.resource}/packages/{NAME}/tags/{tag}"
    image_tag = unless_missing(lambda: google.get(url))
    return str((image_tag or {}).get("version", "")).rpartition("/")[2]


def _pushed_to(repository: ImageRepository) -> str:
    """The image's name for the engine: below localcloud's address if that stands for Google here."""
    local = urlsplit(os.environ.get("BEZEL_REGISTRY_ENDPOINT", "")).netloc
    return f"{local}/{repository.image}" if local else repository.image


def _build(image: str, repository: ImageRepository, clone: Path, show: Callable[[str], None]) -> None:
    """Build and push an image.

    Raises:
        UserError: There is no engine, no Dockerfile, or a command failed.
    """
    if not (clone / DOCKERFILE).is_file():
        consequence = f"{DOCKERFILE} is missing, so the image of this code cannot be built here."
        raise UserError(Problem("folder", str(clone), consequence, "run the command in a clone of bezel."))
    engine = _engine()
    show(f"builds {image} with {engine}")
    build = [engine, "build", "--platform", "linux/amd64", "--file", str(DOCKERFILE), "--tag", image, "."]
    _run(build, clone, "read the output above the failed step; the base image and PyPI must be reachable.")
    show(f"pushes {image}")
    login = f"log {engine} in: gcloud auth configure-docker {shell_word(repository.host)}"
    roles = "your account needs roles/artifactregistry.writer on the repository."
    _run([engine, "push", image], clone, f"{login}; {roles}")


def _engine() -> str:
    """The first container engine that responds.

    Raises:
        UserError: There is none.
    """
    tried = []
    for engine in _ENGINES:
        if shutil.which(engine) is None:
            tried.append(f"{engine} is not on PATH")
            continue
        ended = subprocess.run([engine, "info"], capture_output=True, encoding="utf-8", timeout=60, check=False)
        if not ended.returncode:
            return engine
        last = (ended.stderr.strip() or "no reason given").splitlines()[-1]
        tried.append(f"{engine} does not work: {last.removeprefix('ERROR: ')}")
    consequence = f"the image can neither be built nor pushed ({'; '.join(tried)})."
    repair = "start Docker or Podman, or run this command in the same clone on a machine that has one."
    raise UserError(Problem("container engine", None, consequence, repair))


def _run(command: Sequence[str], folder: Path, repair: str) -> None:
    """Run a command of the engine.

    Raises:
        UserError: It failed; the text has the last lines of its output.
    """
    ended = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode:
        lines = "\n".join(ended.stdout.strip().splitlines()[-_LINES:])
        consequence = f"`{' '.join(command[:2])}` failed with status {ended.returncode}:\n{lines}"
        raise UserError(Problem("image", command[-1] if command[1] == "push" else None, consequence, repair))
