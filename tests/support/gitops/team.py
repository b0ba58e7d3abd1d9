"""A team's repository on the tests' forge: the program with one stack, people, variables, branch protection, a runner.

Its jobs deploy to a localcloud, to which the runner's environment points, as a self-hosted runner's would; nothing in
the workflow files knows of it. Leaves out the forge (`forge`) and the runner (`runner`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bezel.localcloud import control, seed
from bezel.localcloud.core.paths import PROJECT_NUMBER
from bezel.localcloud.processes.process_status import end_marked
from bezel.simulated_vllm import synthetic_weights
from tests.support.gitops.forge import OWNER, REPOSITORY, Forge, add_user
from tests.support.gitops.issuer import Issuer
from tests.support.gitops.pipeline import BACKEND, Pipeline
from tests.support.gitops.runner import end_group
from tests.support.gitops.working_copy import ROOT, WorkingCopy, tracked_files
from tests.support.localcloud.client import PARENT

STACK = "l4-qat"
DEVELOPER, REVIEWER, STRANGER = "dev", "reviewer", "stranger"
PASSWORD = "not a secret 1"
PASSPHRASE = "planted-passphrase"
VERDICT = "preview / verdict (pull_request)"
# Workflows that the tests do not run: they would run the tests.
LEFT_OUT = ("check.yml", "release.yml")
MARK = "GITOPS_RUNNER"
RUN_SECONDS = 200.0
POOL = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/pipeline"
POOLS = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"
MODEL = "gemma-4-12B-it-qat-w4a16-ct"


@dataclass
class Team:
    """The repository, a working copy of it, and the cloud that its jobs deploy to.

    Attributes:
        forge: The forge.
        copy: The working copy.
        pipeline: The cloud.
        folder: The place of the runners.
        act: The program act.
        issuer: It signs the identity tokens of jobs.
        before: What was in the cloud before any deploy, as `inventory` gives it.
        runners: Ends the runners.
        runner: The newest of them.
    """

    forge: Forge
    copy: WorkingCopy
    pipeline: Pipeline
    folder: Path
    act: Path
    issuer: Issuer
    before: Mapping[str, Any] = field(default_factory=dict)
    runners: ExitStack = field(default_factory=ExitStack)
    runner: "Killable" = field(init=False)

    def open(self, branch: str, title: str, *, user: str = DEVELOPER, head: str = "") -> int:
        """Open a pull request for a pushed branch; return its number."""
        body = {"title": title, "head": head or branch, "base": "main"}
        return int(self.forge.repository("POST", "/pulls", body, user=user)["number"])

    def set(self, path: str, value: object, stack: str = STACK) -> None:
        """Change one value of a stack file of the working copy; None removes it. `path`: `scaling.max_instances`."""
        file = self.copy.folder / f"Pulumi.{stack}.yaml"
        content = yaml.safe_load(file.read_text())
        first, *rest = path.split(".")
        place, key = content["config"], f"bezel:{first}"
        for step in rest:
            place = place.setdefault(key, {})
            key = step
        if value is None:
            place.pop(key, None)
        else:
            place[key] = value
        file.write_text(yaml.safe_dump(content, sort_keys=False))

    def push(self, branch: str, message: str) -> str:
        """Commit and push the working copy as a branch; return the commit."""
        commit = self.copy.commit(message)
        self.copy.push(branch)
        return commit

    def previewed(self, commit: str) -> dict[str, Any]:
        """Wait for the end of the pull request's workflow on a commit."""
        return self.forge.ended("preview.yml", RUN_SECONDS, head_sha=commit)

    def approve(self, number: int) -> None:
        """Approve a pull request as the reviewer."""
        body = {"event": "APPROVED", "body": "fine"}
        self.forge.repository("POST", f"/pulls/{number}/reviews", body, user=REVIEWER)

    def merge(self, number: int) -> Any:
        """Try to merge; return the response."""
        body = {"Do": "merge", "delete_branch_after_merge": True}
        return self.forge.repository("POST", f"/pulls/{number}/merge", body, ok=False)

    def press(self, button: str, run: Mapping[str, Any]) -> None:
        """Press a button of a run's page as the reviewer: `cancel`, `approve`. No API has these."""
        self.forge.press(f"/actions/runs/{run['id']}/{button}", REVIEWER, PASSWORD)

    def inventory(self) -> dict[str, Any]:
        """What users made in the cloud, but for the states."""
        found = control.inventory(self.pipeline.endpoint)
        return {kind: sorted(names) for kind, names in found.items()}

    def log(self, run: Mapping[str, Any]) -> str:
        """What the jobs of a run printed."""
        return self.forge.log_of(run["id"])

    def job_environment(self) -> dict[str, str]:
        """The runner's environment: this machine's tools and caches, and where the cloud is."""
        kept = {name: value for name, value in os.environ.items() if name in {"LANG", "PATH", "USER", "GOFLAGS"}}
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        given = self.pipeline.environment
        # These come from the repository's variables and secrets, and an account from the job's login.
        elsewhere = {"PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS"}
        own = {name: given[name] for name in given if name not in elsewhere and not name.startswith("CLOUDSDK_AUTH")}
        uv = os.environ.get("UV_CACHE_DIR") or f"{cache}/uv"
        return kept | own | {"XDG_CACHE_HOME": cache, "UV_CACHE_DIR": uv, "PATH": f"{given['PATH']}:{kept['PATH']}"}

    def start_runner(self) -> None:
        """Start a runner of the repository, which ends with the team."""
        place = self.folder / f"runner-{len(list(self.folder.glob('runner-*')))}"
        runner = runner_of(self.forge, place, self.act, self.job_environment(), issuer=self.issuer.environment())
        self.runner = Killable(self.runners.enter_context(runner), place)


@dataclass(frozen=True)
class Killable:
    """A runner's process and its folder."""

    process: "subprocess.Popen[bytes]"
    place: Path

    def kill(self) -> None:
        """Kill it and all that it has started, as a machine that fails does."""
        self.process.kill()
        self.process.wait()
        # What one of them starts in this moment has its mark, too.
        while end_marked(MARK, str(self.place)):
            pass


@contextmanager
def runner_of(
    forge: Forge,
    folder: Path,
    act: Path,
    environment: Mapping[str, str],
    *,
    issuer: Mapping[str, str] | None = None,
    jobs: int = 2,
) -> "Iterator[subprocess.Popen[bytes]]":
    """A runner process, in its own environment."""
    folder.mkdir(parents=True)
    registration = forge.repository("POST", "/actions/runners/registration-token")["token"]
    settings = {"forge": forge.url, "registration": registration, "act": str(act), "jobs": jobs, "issuer": issuer}
    (folder / "runner.json").write_text(json.dumps(settings))
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gitops.runner", str(folder)],
            cwd=ROOT, env={**environment, MARK: str(folder)}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        end_group(process)
        process.wait(timeout=30)
        # Jobs have sessions of their own.
        end_marked(MARK, str(folder))


def federate(pipeline: Pipeline, issuer: Issuer) -> dict[str, str]:
    """Let jobs of the repository act as two accounts; return the repository's variables for that."""
    cloud = pipeline.cloud
    issuer.claims |= {"repository": f"{OWNER}/{REPOSITORY}", "sub": f"repo:{OWNER}/{REPOSITORY}"}
    cloud.enable("iam", "iamcredentials", "sts")
    cloud.done("iam/v1", cloud.post(POOLS, {}, workloadIdentityPoolId="pipeline"))
    provider = {
        "attributeMapping": {"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"},
        "attributeCondition": f"assertion.repository == '{OWNER}/{REPOSITORY}'",
        "oidc": {"issuerUri": issuer.url},
    }
    path = f"{POOLS}/pipeline/providers"
    cloud.done("iam/v1", cloud.post(path, provider, workloadIdentityPoolProviderId="forge"))
    member = f"principalSet://iam.googleapis.com/{POOL}/attribute.repository/{OWNER}/{REPOSITORY}"
    accounts = {}
    for name in ("preview", "deploy"):
        account = accounts[name] = cloud.account(name)
        policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}
        place = f"/iam/v1/{PARENT}/serviceAccounts/{account}"
        assert cloud.post(f"{place}:setIamPolicy", {"policy": policy}).status_code == 200
        # The roles of each are the foundation's matter, and tested there.
        cloud.grant_project("roles/owner", f"serviceAccount:{account}")
    return {
        "BEZEL_IDENTITY_PROVIDER": f"{POOL}/providers/forge",
        "BEZEL_PREVIEW_ACCOUNT": accounts["preview"],
        "BEZEL_DEPLOY_ACCOUNT": accounts["deploy"],
    }


def found(forge: Forge, folder: Path, act: Path, issuer: Issuer) -> Team:
    """Make the repository with its people, variables and protection; `forge` has it empty."""
    (folder / "pipeline").mkdir()
    pipeline = Pipeline.whole(folder / "pipeline")
    for name in (DEVELOPER, REVIEWER, STRANGER):
        add_user(forge, name, PASSWORD)
    for name in (DEVELOPER, REVIEWER):
        forge.repository("PUT", f"/collaborators/{name}", {"permission": "write"})
    stacks = [name for name in tracked_files() if name.startswith("Pulumi.") and name.count(".") == 2]
    files = [name for name in tracked_files() if name not in stacks or name == f"Pulumi.{STACK}.yaml"]
    copy = WorkingCopy.of(folder / "copy", forge.address(DEVELOPER), files, DEVELOPER)
    # Without Actions at first: a push of all workflows would run the tests, and these among them.
    forge.repository("PATCH", "", {"has_actions": False})
    copy.git("push", "--quiet", forge.address(OWNER), "HEAD:refs/heads/main")
    # The forge knows the branch a moment after the push.
    forge.wait_for("the pushed branch", lambda: not forge.repository("GET", "")["empty"])
    forge.wait_for("its commit", lambda: forge.repository("GET", "/branches/main", ok=False).is_success)
    forge.repository("PATCH", "", {"has_actions": True})
    for workflow in LEFT_OUT:
        forge.repository("PUT", f"/actions/workflows/{workflow}/disable")
    variables = {
        "GOOGLE_PROJECT": pipeline.environment["GOOGLE_PROJECT"],
        "PULUMI_BACKEND_URL": BACKEND,
        "PULUMI_SECRETS_PROVIDER": "passphrase",
        **federate(pipeline, issuer),
    }
    for name, value in variables.items():
        forge.repository("POST", f"/actions/variables/{name}", {"value": value})
    forge.repository("PUT", "/actions/secrets/PULUMI_CONFIG_PASSPHRASE", {"data": PASSPHRASE})
    protection = {
        "rule_name": "main",
        "enable_push": False,
        "enable_status_check": True,
        "status_check_contexts": [VERDICT],
        "required_approvals": 1,
        "block_on_outdated_branch": True,
        "block_admin_merge_override": True,
    }
    forge.repository("POST", "/branch_protections", protection)
    weights = synthetic_weights.model_files("gemma-4-12b-it-qat-w4a16")
    seed.seed(pipeline.endpoint, "bezel-local-models", MODEL, weights)
    seed.enable(pipeline.endpoint, "cloudquotas.googleapis.com")
    team = Team(forge, copy, pipeline, folder, act, issuer)
    team.before = team.inventory()
    return team
