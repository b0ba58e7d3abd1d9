"""A stack in a bucket, under the real engine: locked, changed outside, found by drift, expired, destroyed."""

import signal
import subprocess

import pytest

from bezel.engine.run.command import pulumi_cli
from bezel_localcloud.core.paths import PROJECT
from localcloud_support.client import until
from tests.support.gitops.fake_forge import fake_forge
from tests.support.gitops.pipeline import STACK, Pipeline

pytestmark = pytest.mark.slow
LOCK = "locks/small/dev.json"
REDEPLOY = "pulumi up --yes --skip-preview --non-interactive --stack dev"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    made = Pipeline.small(tmp_path_factory.mktemp("pipeline"))
    yield made
    made.stop()


def pulumi(pipeline, *arguments):
    command = [pulumi_cli(), *arguments, "--non-interactive"]
    environment = pipeline.warm_environment
    ended = subprocess.run(
        command, cwd=pipeline.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def grant(pipeline, name, *roles):
    policy = pipeline.cloud.post(f"/crm/v1/projects/{PROJECT}:getIamPolicy", {}).json()
    member = f"serviceAccount:{name}@{PROJECT}.iam.gserviceaccount.com"
    policy["bindings"] += [{"role": role, "members": [member]} for role in roles]
    assert pipeline.cloud.post(f"/crm/v1/projects/{PROJECT}:setIamPolicy", {"policy": policy}).status_code == 200


def set_last_day(pipeline, day):
    """Give what is deployed another last day, as a deploy of another stack file does."""

    def change(latest):
        (bucket,) = [item for item in latest["resources"] if item["urn"].endswith("::data")]
        bucket["inputs"]["labels"]["expires-at"] = day

    pipeline.edit_state(change)


def test_a_stack_is_locked_drifts_expires_and_is_destroyed(pipeline):
    pulumi(pipeline, "stack", "init", STACK)
    pulumi(pipeline, "up", "--yes", "--skip-preview")
    bucket = pulumi(pipeline, "stack", "output", "bucket").strip()

    # Locks, in Cloud Storage as localcloud serves it.
    shown = pipeline.bezel("ci", "lock", STACK, "--", "bezel", "ci", "lock", STACK, "--show")
    assert shown.code == 0, shown.text
    assert "its process is running on this machine" in shown.text
    holder = pipeline.start("ci", "lock", STACK, "--", "sleep", "60")
    until(lambda: LOCK in pipeline.objects("locks/"), 40)
    refused = pipeline.bezel("ci", "lock", STACK, "--wait", "0s", "--", "true")
    assert refused.code == 5
    assert f"process {holder.pid}" in refused.text
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    taken = pipeline.bezel("ci", "lock", STACK, "--wait", "0s", "--", "true")
    assert taken.code == 0
    assert "took over the lock of dev" in taken.text
    assert pipeline.objects("locks/") == []

    # Drift, by an account that may only read.
    reader = pipeline.account("reader")
    grant(pipeline, "reader", "roles/viewer", "roles/storage.objectViewer")
    before = pipeline.cloud.get("/storage/v1/b/states/o").json()["items"]
    (unread,) = pipeline.report("ci", "drift", STACK, code=1, **reader)["stacks"]
    assert (unread["verdict"], unread["resources"]) == ("unknown", [])
    assert [item["permission"] for item in unread["not_judged"]] == ["storage.buckets.getIamPolicy"]
    grant(pipeline, "reader", "roles/iam.securityReviewer")
    assert pipeline.cloud.patch(f"/storage/v1/b/{bucket}", {"labels": {"owner": "ben"}}).status_code == 200
    with fake_forge("gitea") as forge:
        report = pipeline.report("ci", "drift", "--all", "--issue", code=4, **reader, **forge.environ())
        assert "`labels.owner`: cloud `ben`, program `ml`" in forge.issues[0]["body"]
        (resource,) = report["stacks"][0]["resources"]
        assert (resource["name"], resource["op"], resource["is_outside"]) == ("data", "update", True)
        assert {"path": "labels.owner", "cloud": "ben", "program": "ml"} in resource["properties"]
        assert pipeline.cloud.get("/storage/v1/b/states/o").json()["items"] == before
        pipeline.set("bezel:labels", {"expires-at": "2026-01-01"})
        assert pipeline.report("ci", "expire")["kept"] == {STACK: "2026-01-01, never"}  # what is deployed says never
        pulumi(pipeline, "up", "--yes", "--skip-preview", "--refresh")
        report = pipeline.report("ci", "drift", "--all", "--issue", **reader, **forge.environ())
        assert (report["stacks"][0]["verdict"], forge.issues[0]["state"]) == ("clean", "closed")
    unreadable = pipeline.account("nobody")
    assert pipeline.report("ci", "drift", STACK, code=1, **unreadable)["stacks"][0]["verdict"] == "unknown"

    # Expiry: a plan at first, then the stack is destroyed under its lock, and what is another's stays.
    labels = {"managed-by": "bezel", "stack": "gone"}
    body = {"name": "left-over", "location": "US", "labels": labels}
    assert pipeline.cloud.post("/storage/v1/b", body, project=PROJECT).status_code == 200
    plan = pipeline.report("ci", "expire")
    assert [(item["kind"], item["name"], item["may_destroy"]) for item in plan["findings"]] == [
        ("stack", STACK, True),
        ("bucket", "left-over", False),
    ]
    assert pipeline.cloud.get(f"/storage/v1/b/{bucket}").status_code == 200

    # A deploy under the lock gives it a later day, after the plan was made and before the lock is free.
    later = pipeline.start("ci", "lock", STACK, "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done; " + REDEPLOY)
    until(lambda: LOCK in pipeline.objects("locks/"), 40)
    expiring = pipeline.start("ci", "expire", "--yes", "--wait", "2m")
    text = ""
    while "waiting for the lock" not in text and (line := expiring.stdout.readline()):
        text += line
    pipeline.set("bezel:labels", {"expires-at": "2099-01-01"})
    (pipeline.folder / "go").touch()
    text += expiring.communicate(timeout=120)[0]
    assert (later.wait(120), expiring.returncode) == (0, 1), text
    assert "a deploy has changed it since the plan was made" in text
    assert pipeline.cloud.get(f"/storage/v1/b/{bucket}").status_code == 200
    pipeline.set("bezel:labels", {"expires-at": "2026-01-01"})
    set_last_day(pipeline, "2026-01-01")

    with fake_forge("github") as forge:
        done = pipeline.report("ci", "expire", "--yes", "--issue", **forge.environ())
        assert [item["outcome"] for item in done["findings"]] == ["destroyed", ""]
        assert "Destroyed." in forge.issues[0]["body"]
        assert "left-over" in forge.issues[0]["body"]
    assert pipeline.cloud.get(f"/storage/v1/b/{bucket}").status_code == 404
    assert pipeline.cloud.get("/storage/v1/b/left-over").status_code == 200
    assert pipeline.objects("locks/") == []
    assert pipeline.report("ci", "drift", "--all")["stacks"] == []
    assert [item["kind"] for item in pipeline.report("ci", "expire", "--yes")["findings"]] == ["bucket"]
