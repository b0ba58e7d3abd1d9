"""`bezel ci prices` on localcloud: a price that has changed becomes one pull request, which a second run updates."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from bezel.cli.ci import prices
from bezel.engine.project.project import Project
from bezel.gitops.prices.pull_request import BRANCH
from bezel.gitops.prices.stack_effects import PRICE_FILE
from bezel_localcloud import control
from localcloud_support.client import Client
from tests.support.e2e import warm_localcloud
from tests.support.gitops.fake_forge import fake_forge
from tests.support.gitops.working_copy import ROOT, WorkingCopy, tracked_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
GPU = "NVIDIA L4 GPU with no zonal redundancy in us-east4"
PLANNING = ("bezel/", "packages/base/bezel_base/", "packages/catalog/bezel_catalog/", "__main__.py")
STACKS = ("Pulumi.l4-qat.yaml", "Pulumi.v6e1-12b.yaml", "Pulumi.yaml")


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    client = Client(warm_localcloud.start_fake(tmp_path / "cloud"))
    client.enable("cloudbilling")
    for name, value in control.environment(client.endpoint).items():
        monkeypatch.setenv(name, value)
    yield client
    control.stop(tmp_path / "cloud")


def test_a_changed_price_becomes_one_pull_request(
    cloud: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [name for name in tracked_files() if name.startswith(PLANNING) or name in STACKS]
    project = Project(WorkingCopy.of(tmp_path / "copy", "", files).folder)
    options = argparse.Namespace(format="json", out=None, into="", dry_run=True)
    assert cloud.post(
        "/localcloud/faults", {"kind": "price-changed", "parameters": {"sku": GPU, "factor": 2}}
    ).is_success
    assert prices.run(project, options) == 0
    dry = json.loads(capsys.readouterr().out)
    assert (dry["pull_request"], dry["dry_run"], dry["needed"]) == (None, True, True)
    (changed,) = dry["changed"]
    assert (changed["before"]["usd"], changed["after"]["usd"]) == ("0.0001867", "0.0003734")
    (effect,) = dry["stacks"]
    assert (effect["stack"], effect["before"]) == ("l4-qat", "1.0465 USD/h")
    assert effect["text"].startswith("1.0465 USD/h -> refused (")
    with fake_forge("gitea") as forge:
        forge.branches = {"main": {PRICE_FILE: (ROOT / PRICE_FILE).read_bytes()}}
        for name, value in (forge.environ() | {"GITHUB_REF": "refs/heads/main"}).items():
            monkeypatch.setenv(name, value)
        options.dry_run = False
        assert prices.run(project, options) == 0
        assert json.loads(capsys.readouterr().out)["pull_request"]["number"] == 1
        (pull,) = forge.pulls
        assert "Do not merge" in pull["body"], "prices of localcloud are not Google's"
        written = forge.branches[BRANCH][PRICE_FILE].decode()
        assert "us-east4,instance-based,gpu-second,0.0003734," in written
        assert forge.branches["main"][PRICE_FILE] == (ROOT / PRICE_FILE).read_bytes()
    assert (project.folder / PRICE_FILE).read_bytes() == (ROOT / PRICE_FILE).read_bytes(), "the checkout stays"
