"""The deploy account's roles are what stacks need: with all of them a stack lives, without any one a step fails."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from bezel.localcloud import seed
from bezel.localcloud.core.paths import PROJECT
from bezel.planner import make_plan
from bezel.pulumi_engine.project import Project
from bezel.pulumi_engine.pulumi_command import pulumi_cli
from bezel.simulated_vllm import synthetic_weights
from bootstrap.deploy import APIS
from tests.support.bootstrap.accounts import Accounts, settings
from tests.support.e2e.rehearsal import SECONDS, Run, make_secret
from tests.support.gitops.pipeline import STATES, Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.long]
SERVICE, LEASE = "l4-qat", "v6e1-12b"


@dataclass
class Deployment:
    """A checkout whose stacks an account of the pipeline deploys."""

    pipeline: Pipeline
    accounts: Accounts

    @classmethod
    def new(cls, folder: Path) -> Deployment:
        """A cloud with the accounts, the models and the stacks."""
        pipeline = Pipeline.whole(folder)

        def ask(verb: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
            content = {} if body is None else {"json": body}
            answer = pipeline.cloud.http.request(verb, path, **content)
            assert answer.is_success, f"{path}: {answer.text}"
            found: dict[str, Any] = answer.json()
            return found

        ask("POST", f"/serviceusage/v1/projects/{PROJECT}/services:batchEnable", {"serviceIds": list(APIS)})
        made = cls(pipeline, Accounts(ask, settings(state_bucket=STATES)))
        made.accounts.make()
        make_secret(pipeline.cloud.http, "hf-token")
        for stack in (SERVICE, LEASE):
            plan = make_plan(Project(pipeline.folder).configuration(stack), project=PROJECT, stack=stack)
            for path, model in {plan.weights.path: plan.model, **plan.weights.drafts}.items():
                files = synthetic_weights.model_files(model)
                seed.seed(pipeline.endpoint, str(plan.weights.bucket), path, files)
            made.pulumi("stack", "init", stack)
        return made

    def pulumi(self, *words: str, account: str = "") -> Run:
        """Run `pulumi`, as an account of the pipeline where one is named."""
        environment = self.pipeline.environment | {"BEZEL_DEADLINE_SECONDS": "60"}
        if account:
            # The provider gets the token; the checks make identity tokens as a federated job does.
            environment["GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"] = self.accounts.email(account)
            words = (*words, "--config", f"gcp:accessToken={self.accounts.token(account)}")
        ended = subprocess.run(
            [pulumi_cli(), *words],
            cwd=self.pipeline.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Run(ended.returncode, ended.stdout + ended.stderr)

    def up(self, stack: str) -> Run:
        """Deploy a stack as the deploy account."""
        return self.pulumi("up", "--yes", "--skip-preview", "--stack", stack, account="deploy")

    def preview(self, stack: str) -> Run:
        """Preview a stack as the preview account, with a refresh."""
        return self.pulumi("preview", "--refresh", "--stack", stack, account="preview")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    made = Deployment.new(tmp_path_factory.mktemp("deployment"))
    yield made
    made.pipeline.stop()


@pytest.mark.parametrize(
    ("stack", "role", "denied"),
    [
        (SERVICE, "bezelDeploy", "serviceusage."),
        (SERVICE, "bezelDeployWeights", "storage."),
        (SERVICE, "bezelDeploySecrets", "secretmanager."),
        (LEASE, "bezelDeployLeases", "compute."),
    ],
)
def test_without_one_role_a_step_is_refused(deployment: Deployment, stack: str, role: str, denied: str) -> None:
    if role == "bezelDeploySecrets":
        deployment.pipeline.set("bezel:secrets", {"HF_TOKEN": "hf-token"}, stack)
    deployment.accounts.grant("deploy", without=role)
    try:
        refused = deployment.up(stack)
    finally:
        deployment.accounts.grant("deploy")
        deployment.pipeline.set("bezel:secrets", None, stack)
    assert refused.code != 0
    assert "403" in refused.text, refused.text
    assert denied in refused.text, refused.text


@pytest.mark.parametrize("stack", [SERVICE, LEASE])
def test_with_its_roles_a_stack_is_previewed_deployed_checked_and_destroyed(deployment: Deployment, stack: str) -> None:
    previewed = deployment.preview(stack)
    assert previewed.code == 0, previewed.text
    made = deployment.up(stack)
    assert made.code == 0, made.text
    again = deployment.preview(stack)
    assert again.code == 0, again.text
    assert "denied" not in again.text
    destroyed = deployment.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack)
    assert destroyed.code == 0, destroyed.text


def test_the_preview_account_cannot_deploy(deployment: Deployment) -> None:
    refused = deployment.pulumi("up", "--yes", "--skip-preview", "--stack", SERVICE, account="preview")
    assert refused.code != 0
    assert "403" in refused.text
