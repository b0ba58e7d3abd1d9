"""A stack from preview to deploy in a bucket of states: only what was reviewed is deployed, and a kill is survived."""

import os
import signal
from pathlib import Path

import pytest

from bezel.engine.outcomes import Exit
from localcloud_support.client import plain, until
from tests.support.e2e.rehearsal import SECONDS
from tests.support.gitops.pipeline import STACK, STATES, Pipeline

pytestmark = pytest.mark.slow
PREVIEW, DEPLOY = ("ci", "preview", STACK), ("ci", "deploy", STACK, "--wait", "60s")
PACK = """
import os

from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def look(args, report):
    if args.resource_type.endswith(":Bucket") and os.environ["BEZEL_TEST_PACK"] == "dies":
        os._exit(3)
    if args.resource_type.endswith(":Service") and args.props["annotations"]["second"] == "":
        report("no hash")


PolicyPack("odd", [ResourceValidationPolicy("look", "Looks.", look, EnforcementLevel.MANDATORY)])
"""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    made = Pipeline.small(tmp_path_factory.mktemp("pipeline"))
    yield made
    made.stop()


@pytest.fixture
def pipeline_with_deploy(pipeline):
    """The pipeline with its first stack file and a deployed stack: tests of a module may run in several processes."""
    pipeline.reset()
    if not pipeline.buckets():
        pipeline.report(*PREVIEW)
        pipeline.report(*DEPLOY)
    return pipeline


def written_by(pipeline: Pipeline, token: str, name: str) -> int:
    params = {"uploadType": "media", "name": name}
    headers = {"Authorization": f"Bearer {token}"}
    path = f"{pipeline.endpoint.base}/upload/storage/v1/b/{STATES}/o"
    return plain.post(path, params=params, headers=headers, content=b"{}").status_code


def text_of(report: dict) -> str:
    return "\n".join(report["problems"])


def test_a_tree_is_deployed_as_it_was_previewed_and_nothing_else_is(pipeline):
    # A preview that was skipped. Another test of this module may have run before in this process.
    pipeline.clear()
    report = pipeline.report(*DEPLOY, code=3)
    assert (report["verdict"], pipeline.buckets()) == ("refused", [])
    assert "this tree was not previewed" in text_of(report)

    # The first deploy, previewed by an account that may only read the states and create plans.
    reader = pipeline.account(
        "previewer", ("roles/storage.objectViewer", ""), ("roles/storage.objectCreator", "plans/")
    )
    before = pipeline.objects(".pulumi/")
    previewed = pipeline.report(*PREVIEW, **reader)
    assert previewed["verdict"] == "allowed"
    assert [row["name"] for row in previewed["changes"]["create"]] == ["data", "first", "hidden"]
    assert previewed["quota"] == ["L4 in us-east4: 1 GPU used"]
    assert pipeline.objects(".pulumi/") == before
    plans = pipeline.objects("plans/")
    assert len(plans) == 2
    assert all("hush-hush" not in str(pipeline.read(name)) for name in plans)

    # That account can neither change a review nor write the record of deploys, which the next deploy trusts.
    for name in (plans[0], "deploys/small/dev.json"):
        assert written_by(pipeline, reader["GOOGLE_OAUTH_ACCESS_TOKEN"], name) == 403
    assert written_by(pipeline, reader["GOOGLE_OAUTH_ACCESS_TOKEN"], "plans/another.json") == 200

    deployed = pipeline.report(*DEPLOY)
    assert (deployed["verdict"], deployed["review"]) == ("deployed", "as reviewed")
    assert deployed["changes_digest"] == previewed["changes_digest"]
    assert (deployed["smoke"]["ok"], deployed["smoke"]["simulated"]) == (True, True)
    (bucket,) = pipeline.buckets()

    pipeline.set("small:price", "7")  # an output of the stack and of no resource: nothing to review
    pipeline.commit()
    only_outputs = pipeline.report(*DEPLOY)
    assert (only_outputs["verdict"], only_outputs["outputs"], only_outputs["changes"]) == ("deployed", ["price"], {})

    # Unchanged: no deploy, and no review is needed.
    history = pipeline.objects(".pulumi/history/")
    assert pipeline.report(*DEPLOY)["verdict"] == "unchanged"
    assert pipeline.objects(".pulumi/history/") == history
    assert pipeline.buckets() == [bucket]


def test_a_state_that_changed_after_the_preview_needs_another_look(pipeline_with_deploy):
    pipeline = pipeline_with_deploy
    (bucket,) = pipeline.buckets()
    pipeline.set("bezel:labels", {"team": "a"})
    pipeline.commit()
    previewed = pipeline.report(*PREVIEW)
    assert previewed["changes"]["update"][0]["name"] == "data"

    def forget_first(latest: dict) -> None:
        latest["resources"] = [item for item in latest["resources"] if not item["urn"].endswith("::first")]

    pipeline.edit_state(forget_first)
    report = pipeline.report(*DEPLOY, code=3)
    assert "the state has changed since this tree was previewed" in text_of(report)
    assert report["difference"] == ["new: create first (gcp:storage/bucketObject:BucketObject)"]
    assert pipeline.buckets() == [bucket]

    digest = report["changes_digest"]
    assert "other changes" in text_of(pipeline.report(*DEPLOY, "--approve", previewed["changes_digest"], code=3))
    approved = pipeline.report(*DEPLOY, "--approve", digest)
    assert (approved["verdict"], approved["changes_digest"]) == ("deployed", digest)
    assert pipeline.buckets()[0]["labels"]["team"] == "a"


def test_a_first_deploy_is_previewed_without_the_key_of_its_secrets(pipeline):
    content = (pipeline.folder / f"Pulumi.{STACK}.yaml").read_text()
    key = "gcpkms://projects/p/locations/us/keyRings/r/cryptoKeys/k"
    (pipeline.folder / "Pulumi.kms.yaml").write_text(f"secretsprovider: {key}\n{content}")
    pipeline.commit()
    report = pipeline.report("ci", "preview", "kms")
    assert (report["verdict"], report["notes"][0][:21]) == ("allowed", "saved for the deploy:")
    assert (pipeline.folder / "Pulumi.kms.yaml").read_text() == f"secretsprovider: {key}\n{content}"


def test_a_review_that_another_hand_wrote_deploys_nothing(pipeline_with_deploy):
    pipeline = pipeline_with_deploy
    (bucket,) = pipeline.buckets()
    pipeline.set("bezel:labels", {"team": "b"})
    tree = pipeline.commit()
    state = pipeline.report(*PREVIEW, "--pack", "nowhere", code=3)["state_digest"].removeprefix("sha256:")
    forged = {"kind": "preview", "stack": STACK, "tree": tree, "state_digest": f"sha256:{state}", "verdict": "allowed"}
    content = {"document": forged | {"changes_digest": "sha256:00"}, "planned": []}
    pipeline.put(f"plans/small/dev/{tree}/{state}.json", content)
    report = pipeline.report(*PREVIEW, code=3)
    assert report["verdict"] == "refused"
    assert "it is not a review that this command can have written" in text_of(report)
    assert "not one that a preview wrote" in text_of(pipeline.report(*DEPLOY, code=3))
    assert pipeline.buckets() == [bucket]


def test_a_missing_or_failing_pack_and_an_unknown_price_refuse(pipeline, tmp_path):
    missing = pipeline.report(*PREVIEW, "--pack", str(tmp_path / "none"), code=3)
    assert "there is no policy pack in this folder" in text_of(missing)

    (tmp_path / "__main__.py").write_text(PACK)
    settings = f"{{name: python, options: {{toolchain: uv, virtualenv: {pipeline.folder / '.venv'}}}}}"
    (tmp_path / "PulumiPolicy.yaml").write_text(f"description: x\nversion: 0.1.0\nruntime: {settings}\n")
    pipeline.set("small:notes", {"second": "two"})
    pipeline.set("small:gpu", "nvidia-b200")
    pipeline.commit()
    dead = pipeline.report(*PREVIEW, "--pack", str(tmp_path), code=3, BEZEL_TEST_PACK="dies")
    assert "a policy pack did not evaluate the stack, so nothing passes" in text_of(dead)
    both = pipeline.report(*PREVIEW, "--pack", str(tmp_path), code=3, BEZEL_TEST_PACK="reads")
    assert "can't run policy" in both["violations"][0]["message"]
    assert both["violations"][0]["level"] == "mandatory"
    assert "the price is unknown, so nothing passes" in text_of(both)
    assert both["price"]["after"]["hourly_usd"] is None


def test_a_checkout_with_other_files_is_neither_saved_nor_deployed(pipeline_with_deploy):
    pipeline = pipeline_with_deploy
    pipeline.set("bezel:labels", {"team": "c"})
    saved = pipeline.objects("plans/")
    report = pipeline.report(*PREVIEW)
    assert report["verdict"] == "allowed"
    assert "not saved for a deploy: these files differ from the commit's tree: Pulumi.dev.yaml" in report["notes"]
    assert pipeline.objects("plans/") == saved
    run = pipeline.bezel(*DEPLOY)
    assert (run.code, "these files differ from it: Pulumi.dev.yaml" in run.text) == (3, True)


def drift(pipeline: Pipeline) -> None:
    run = pipeline.bezel("ci", "drift", STACK)
    assert run.code in (Exit.DONE, Exit.DRIFTED), run.text  # what another test has deployed differs


def recovery(pipeline: Pipeline) -> None:
    def interrupt(latest: dict) -> None:
        resource = next(item for item in latest["resources"] if item["urn"].endswith("::hidden"))
        latest["pending_operations"] = [{"type": "updating", "resource": resource}]

    pipeline.edit_state(interrupt)
    run = pipeline.bezel("recover", STACK, "--yes")
    assert (run.code, "reading the open resources from the cloud" in run.text) == (0, True), run.text


def expiry(pipeline: Pipeline) -> None:
    def expire(latest: dict) -> None:
        for item in latest["resources"]:
            if item["urn"].endswith("::data"):
                item["inputs"]["labels"]["expires-at"] = "2026-01-01"

    pipeline.set("bezel:labels", {"expires-at": "2026-01-01"})
    pipeline.commit()
    pipeline.edit_state(expire)
    (finding,) = pipeline.report("ci", "expire", "--yes")["findings"]
    assert (finding["outcome"], pipeline.buckets()) == ("destroyed", [])


@pytest.mark.wide_except("drift")
@pytest.mark.parametrize("command", [drift, recovery, expiry])
def test_a_run_of_the_engine_leaves_a_checkout_without_a_key_unchanged(pipeline_with_deploy, command):
    command(pipeline_with_deploy)
    assert pipeline_with_deploy.git("status", "--porcelain") == ""


def test_a_recovery_of_a_stack_that_the_backend_lacks_is_refused(pipeline):
    (pipeline.folder / "Pulumi.new.yaml").write_text("config: {}\n")
    run = pipeline.bezel("recover", "new")
    assert (run.code, "the backend has no state of it" in run.text) == (1, True), run.text
    assert [name for name in pipeline.objects(".pulumi/") if "new" in name] == []


@pytest.mark.wide
def test_a_deploy_that_was_killed_is_completed_by_running_the_job_again(pipeline_with_deploy):
    pipeline = pipeline_with_deploy
    pipeline.set("small:notes", {"third": "three", "fourth": "four"})
    pipeline.commit()
    pipeline.report(*PREVIEW)
    hold = {"method": "POST", "path": "/upload/storage/v1/b/data-*/o", "when": "after"}
    assert pipeline.cloud.http.put("/localcloud/hold", json=hold).is_success
    process = pipeline.start(*DEPLOY)
    until(lambda: process.poll() is not None or is_held(pipeline), SECONDS)
    assert process.poll() is None, process.communicate()
    kill_all(process.pid)
    process.communicate(timeout=SECONDS)
    pipeline.cloud.http.delete("/localcloud/hold", params={"drop": 1})

    report = pipeline.report(*DEPLOY)
    assert report["verdict"] == "deployed"
    assert report["review"].startswith("the rest of the reviewed changes")
    assert report["recovered"]
    (bucket,) = pipeline.buckets()
    objects = pipeline.cloud.get(f"/storage/v1/b/{bucket['name']}/o").json()["items"]
    assert [item["name"] for item in objects] == ["fourth.txt", "hidden", "third.txt"]
    assert pipeline.objects("locks/") == pipeline.objects(".pulumi/locks/") == []
    assert pipeline.report(*DEPLOY)["verdict"] == "unchanged"


def is_held(pipeline: Pipeline) -> bool:
    return bool(pipeline.cloud.http.get("/localcloud/hold", params={"seconds": 1}).json()["reached"])


def kill_all(pid: int) -> None:
    """Kill a command, the engine and the guard, as a runner that dies does; what the engine started lives on."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert any(Path(f"/proc/{child}/comm").read_text().strip() == "pulumi" for child in children)
    # Stopped first: none of them sees another one die.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in (pid, *map(int, children)):
            os.kill(process, number)


def test_a_salt_of_another_backend_is_named_by_preview_and_deploy(pipeline_with_deploy):
    file = pipeline_with_deploy.folder / f"Pulumi.{STACK}.yaml"
    file.write_text(f"{file.read_text()}encryptionsalt: v1:eA==:v1:eA==:eA==\n")
    pipeline_with_deploy.commit()
    for command in (PREVIEW, DEPLOY, ("deploy", STACK, "--yes")):
        run = pipeline_with_deploy.bezel(*command)
        assert run.code not in (0, 130), run.text
        assert "incorrect passphrase" not in run.text
        assert f"remove the line encryptionsalt from Pulumi.{STACK}.yaml" in " ".join(run.text.split()), command
