"""What judges a stack, from a pull request to its deploy, with the engine: the base, then what the last deploy had."""

import json
from pathlib import Path

import pytest

from bezel.gitops.comment.body import body_of, sections_of, visible
from localcloud_support.client import plain
from tests.support.gitops.pipeline import STACK, Pipeline

pytestmark = pytest.mark.slow
PREVIEW, DEPLOY = ("ci", "preview", STACK, "--base", "main"), ("ci", "deploy", STACK, "--wait", "60s")
LIMITS = "policies/hardware_cost.dev.json"
LOW, HIGH = '"monthly-ceiling": {"limits": {"dev": 500}}', '"monthly-ceiling": {"limits": {"dev": 16000}}'
RAISED = f"{LIMITS} monthly-ceiling.limits.dev 500 → 16000"
# In place of the SDK's module that serves a pack: the engine starts packs in the folder of the judged program.
NO_PACK = "import pathlib, sys\npathlib.Path('shadowed').touch()\nsys.exit(1)\n"


@pytest.fixture
def pipeline(tmp_path):
    made = Pipeline.small(tmp_path)
    replace(made, LIMITS, '"monthly-ceiling": {"limits": {"dev": 1600}}', LOW)
    made.commit("Lower the limit")
    yield made
    made.stop()


def replace(pipeline: Pipeline, name: str, old: str, new: str) -> None:
    file = pipeline.folder / name
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def comment_of(report: dict) -> str:
    return visible(body_of(sections_of([report], "a" * 40)))


@pytest.mark.wide
def test_a_pull_request_is_judged_by_its_base_and_a_deploy_by_the_last_one(pipeline):
    # Before a first deploy nothing is compared, and the comment says so.
    pipeline.git("checkout", "-q", "-b", "early")
    replace(pipeline, LIMITS, LOW, HIGH)
    pipeline.commit("Raise the limit early")
    early = pipeline.report(*PREVIEW)
    assert early["judge"]["changes"] == [RAISED]
    assert "asks for no approval" in early["judge"]["said"]
    assert "stops until its owner" not in comment_of(early)

    pipeline.git("checkout", "-q", "main")
    pipeline.report(*PREVIEW)
    first = pipeline.report(*DEPLOY)
    assert first["verdict"] == "deployed"
    assert "first deploy into this bucket" in first["judge"]["said"]
    assert pipeline.objects("judges/") == ["judges/small/dev.json"]

    # The account of previews cannot say what judged a deploy.
    reader = pipeline.account("previewer", ("roles/storage.objectCreator", "plans/"))
    for name in ("judges/small/dev.json", "judges/small/another.json"):
        address = f"{pipeline.endpoint.base}/upload/storage/v1/b/states/o"
        headers = {"Authorization": f"Bearer {reader['GOOGLE_OAUTH_ACCESS_TOKEN']}"}
        params = {"uploadType": "media", "name": name}
        assert plain.post(address, params=params, headers=headers, content=b"{}").status_code == 403

    # A pull request that raises the limit it is above, empties the pack and shadows the SDK that serves packs.
    pipeline.git("checkout", "-q", "-b", "greedy")
    pipeline.set("small:gpu", "nvidia-l4")
    replace(pipeline, LIMITS, LOW, HIGH)
    replace(
        pipeline,
        "policies/bezel_policies/hardware_cost/pack.py",
        "POLICIES: list[Policy] = [",
        "POLICIES: list[Policy] = []\n_ = [",
    )
    shadow = pipeline.folder / "pulumi" / "policy"
    shadow.mkdir(parents=True)
    (shadow / "__main__.py").write_text(NO_PACK)
    pipeline.commit("Be greedy")
    greedy = pipeline.report(*PREVIEW, code=3)
    assert greedy["verdict"] == "refused"
    assert {item["policy"] for item in greedy["violations"] if item["level"] == "mandatory"} >= {"monthly-ceiling"}
    assert not Path(pipeline.folder / "shadowed").exists()
    assert greedy["judge"]["changes"] == [
        RAISED,
        "policies/bezel_policies/hardware_cost/pack.py is changed",
        "pulumi/policy/__main__.py is new",
    ]
    lines = comment_of(greedy).splitlines()
    assert lines.index(f"- `{RAISED}`") < next(place for place, line in enumerate(lines) if "USD/h" in line)

    # One that raises the limit and stays below it is allowed by the base, and says what it raises.
    pipeline.git("checkout", "-q", "main")
    pipeline.git("checkout", "-q", "-b", "modest")
    replace(pipeline, LIMITS, LOW, HIGH)
    pipeline.set("bezel:labels", {"team": "a"})
    pipeline.commit("Raise the limit")
    modest = pipeline.report(*PREVIEW)
    assert (modest["verdict"], modest["judge"]["changes"]) == ("allowed", [RAISED])
    assert "stops until its owner has approved what judges" in comment_of(modest)

    # Merged, the base is the change: the deploy stops before anything is run, until its digest is typed.
    pipeline.git("checkout", "-q", "main")
    pipeline.git("merge", "-q", "--ff-only", "modest")
    history = pipeline.objects(".pulumi/history/")
    stopped = pipeline.report(*DEPLOY, code=3)
    assert (stopped["verdict"], stopped["judge"]["changes"]) == ("refused", [RAISED])
    looked = pipeline.bezel("ci", "judge", STACK, "--format", "json")
    assert (looked.code, json.loads(looked.text)["judge"]) == (3, stopped["judge"])
    assert f"--approve-judge {stopped['judge']['digest']}" in comment_of(stopped)
    assert pipeline.objects(".pulumi/history/") == history
    deployed = pipeline.report(*DEPLOY, "--approve-judge", stopped["judge"]["digest"])
    assert (deployed["verdict"], deployed["review"]) == ("deployed", "as reviewed")
    assert "approved by its digest" in deployed["judge"]["said"]
    assert pipeline.bezel("ci", "judge", STACK).code == 0
    assert "judge" not in pipeline.report(*DEPLOY)
