"""A tag on the forge becomes a release: the workflow's own run, and every file of it in use afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bezel.forge import Facts
from tests.support.gitops.forge import OWNER, REPOSITORY
from tests.support.gitops.machine import runner_of
from tests.support.gitops.working_copy import ROOT, WorkingCopy, tracked_files
from tests.support.tools.fresh_environment import FreshEnvironment
from tools.release.assets import CHECKSUMS, site_archive
from tools.release.forge_release import ReleasesOfForge
from tools.release.notes import notes
from tools.release.readme_links import distribution_folders
from tools.site.links import broken_links
from tools.site.versions import add_version, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.gitops.forge import Forge

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.gitops, pytest.mark.timeout(1200)]
VERSION = "0.1.0"
EARLIER = "0.0.9"
WORKFLOWS, WORKFLOW = Path(".github/workflows"), "release.yml"
SECONDS = 600
PULUMI = Path(sys.executable).parent / "pulumi"
HOSTS = ROOT / "packages" / "pulumi-offline" / "bezel_pulumi_offline" / "plugins"


@pytest.fixture(scope="module")
def copy(forge: Forge, act: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkingCopy]:
    """This tree on the forge with a section of the changelog for the version, and a runner of its jobs.

    The release's own `.ci/run` is left to `make test`, which this test is a part of.
    """
    folder = tmp_path_factory.mktemp("copy")
    earlier = WorkingCopy.of(folder / "earlier", forge.address(), ["LICENSE"])
    earlier.push("main")
    earlier.git("push", "--quiet", earlier.remote, f"HEAD:refs/tags/v{EARLIER}")
    forge.wait_for("the first commit", lambda: not forge.repository("GET", "")["empty"])
    # The other workflows would run the tests, this one among them.
    names = [name for name in tracked_files() if Path(name).parent != WORKFLOWS or Path(name).name == WORKFLOW]
    copy = WorkingCopy.of(folder / "tree", forge.address(), names)
    changelog = (copy.folder / "CHANGELOG.md").read_text()
    copy.write("CHANGELOG.md", changelog.replace("## Unreleased", f"## {VERSION}"))
    copy.write(".ci/run", "#!/bin/sh\necho all tests passed\n")
    copy.commit("Release")
    copy.push("main", force=True)
    with runner_of(forge, tmp_path_factory.mktemp("runner") / "work", act, os.environ):
        yield copy


@pytest.fixture(scope="module")
def files(forge: Forge, copy: WorkingCopy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the forge has of the release; a release before it has a site of one page."""
    folder = tmp_path_factory.mktemp("files")
    publish_site(forge, folder / "earlier")
    copy.git("tag", f"v{VERSION}")
    copy.git("push", "--quiet", copy.remote, f"v{VERSION}")
    run = forge.wait_for_end(WORKFLOW, SECONDS, head_sha=copy.git("rev-parse", "HEAD"), event="push")
    assert run["conclusion"] == "success", forge.log_of(run["id"])
    (folder / "dist").mkdir()
    for asset in forge.repository("GET", f"/releases/tags/v{VERSION}")["assets"]:
        answer = httpx.get(asset["browser_download_url"], timeout=60, trust_env=False)
        (folder / "dist" / asset["name"]).write_bytes(answer.raise_for_status().content)
    return folder / "dist"


def publish_site(forge: Forge, folder: Path) -> None:
    """Publish the release before, with the archive of its site."""
    (folder / "built").mkdir(parents=True)
    (folder / "built" / "index.html").write_text("earlier")
    add_version(folder / "site", EARLIER, folder / "built")
    pack(folder / "site", folder / site_archive(EARLIER))
    facts = Facts("gitea", f"{forge.url}/api/v1", forge.url, f"{OWNER}/{REPOSITORY}", forge.tokens[OWNER])
    releases = ReleasesOfForge(facts)
    releases.publish(f"v{EARLIER}", "earlier", [folder / site_archive(EARLIER)])
    releases.close()


def test_the_release_has_every_file_with_its_checksum_and_the_notes(
    forge: Forge, copy: WorkingCopy, files: Path
) -> None:
    release = forge.repository("GET", f"/releases/tags/v{VERSION}")
    assert (release["draft"], release["prerelease"], release["name"]) == (False, False, f"v{VERSION}")
    assert release["body"].strip() == notes(f"v{VERSION}", VERSION, (copy.folder / "CHANGELOG.md").read_text()).strip()
    names = {file.name for file in files.iterdir()}
    assert {name for name in names if not name.endswith(".whl")} == {
        CHECKSUMS,
        site_archive(VERSION),
        f"pulumi-resource-bezel-v{VERSION}.tar.gz",
        f"bezel-policy-packs-{VERSION}.tar.gz",
        f"bezel_bench_compiled-{VERSION}.tar.gz",
        "bezel-package-schema.json",
        "bezel-stack-schema.json",
        "bezel-bench-result-schema.json",
    }
    assert len([*files.glob("*.whl")]) == len(distribution_folders(ROOT))
    sums = dict(reversed(line.split("  ")) for line in (files / CHECKSUMS).read_text().splitlines())
    assert sums == {name: hashlib.sha256((files / name).read_bytes()).hexdigest() for name in names - {CHECKSUMS}}


def test_the_wheels_are_a_program_that_makes_a_project(files: Path, tmp_path: Path) -> None:
    environment = FreshEnvironment.make(tmp_path / "environment", files, "bezel")
    command = [environment.folder / "bin" / "bezel", "new", "chat", "--yes", "--packages", files]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "chat" / "Pulumi.yaml").is_file()


def test_the_site_has_both_releases_and_its_links_hold(files: Path, tmp_path: Path) -> None:
    unpack(files / site_archive(VERSION), tmp_path)
    assert [row["version"] for row in json.loads((tmp_path / "versions.json").read_text())] == [VERSION, EARLIER]
    assert (tmp_path / EARLIER / "index.html").read_text() == "earlier"
    assert broken_links(tmp_path) == []
    assert len([*(tmp_path / VERSION).rglob("*.html")]) > 80


def test_the_engine_installs_the_package_and_reads_its_schema(files: Path, tmp_path: Path) -> None:
    variables = pulumi_variables(tmp_path)
    archive = files / f"pulumi-resource-bezel-v{VERSION}.tar.gz"
    install = [PULUMI, "plugin", "install", "resource", "bezel", VERSION, "--file", archive]
    installed = subprocess.run(
        install, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert installed.returncode == 0, installed.stderr
    read = [PULUMI, "package", "get-schema", f"bezel@{VERSION}"]
    shown = subprocess.run(read, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr
    schema = json.loads(shown.stdout)
    assert set(schema["resources"]) == set(json.loads((files / "bezel-package-schema.json").read_text())["resources"])


def test_the_packs_judge_a_state_without_a_clone(files: Path, tmp_path: Path) -> None:
    with tarfile.open(files / f"bezel-policy-packs-{VERSION}.tar.gz") as tar:
        tar.extractall(tmp_path / "packs")  # noqa: S202 - made by this test's own run
    variables = pulumi_variables(tmp_path)
    synced = subprocess.run(
        ["uv", "sync", "--quiet"],
        cwd=tmp_path / "packs",
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert synced.returncode == 0, synced.stderr
    (tmp_path / "packs" / "state.json").write_text(json.dumps(state(instances=40)))
    judge = [PULUMI, "policy", "analyze", "--file", "state.json", "--policy-pack", "hardware_cost"]
    judge += ["--policy-pack-config", "hardware_cost.dev.json"]
    judged = subprocess.run(
        judge, cwd=tmp_path / "packs", env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "template.scaling.maxInstanceCount = 40" in judged.stdout


def state(*, instances: int) -> dict[str, Any]:
    """A state, as `pulumi stack export` writes it, with one service."""
    container = {"image": "vllm/vllm-openai:latest", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {"scaling": {"maxInstanceCount": instances}, "containers": [container]}
    template["nodeSelector"] = {"accelerator": "nvidia-l4"}
    kind, stack = "gcp:cloudrunv2/service:Service", "pulumi:pulumi:Stack"
    service = {"urn": f"urn:pulumi:dev::shop::{kind}::chat", "custom": True, "id": "chat", "type": kind}
    inputs = {"location": "us-east4", "name": "chat", "template": template}
    rows = [{"urn": f"urn:pulumi:dev::shop::{stack}::shop-dev", "custom": False, "type": stack}, service]
    manifest = {"time": "2026-11-29T00:00:00Z", "magic": "", "version": ""}
    service |= {"inputs": inputs, "outputs": {}}
    return {"version": 3, "deployment": {"manifest": manifest, "resources": rows}}


def pulumi_variables(folder: Path) -> dict[str, str]:
    """Variables of the engine with a home of its own, uv and the language host on PATH."""
    sys.path.insert(0, str(ROOT / "tools" / "toolchain"))
    from environment import find_uv

    path = os.pathsep.join([str(Path(find_uv()).parent), str(HOSTS), os.environ["PATH"]])
    more = {"PATH": path, "PULUMI_HOME": str(folder / "home"), "PULUMI_SKIP_UPDATE_CHECK": "1", "VIRTUAL_ENV": ""}
    return os.environ | more


def test_a_tag_of_another_version_publishes_nothing(forge: Forge, copy: WorkingCopy, files: Path) -> None:
    copy.write("README.md", "# Other\n")
    commit = copy.commit("Another")
    copy.git("tag", "v9.9.9")
    copy.git("push", "--quiet", copy.remote, "v9.9.9")
    run = forge.wait_for_end(WORKFLOW, SECONDS, head_sha=commit)
    assert run["conclusion"] == "failure"
    assert f"the tag is v9.9.9, pyproject.toml says {VERSION}" in forge.log_of(run["id"])
    assert forge.repository("GET", "/releases/tags/v9.9.9", ok=False).status_code == 404
    assert len([*files.iterdir()]) == 8 + len(distribution_folders(ROOT))
