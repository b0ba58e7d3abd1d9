"""Jobs of a forge in a project that `bezel init` has set up: each logs in with its own token, and is nobody else.

A job gets the variables that the set-up printed, a token of the tests' own issuer with the claims of its workflow, and
the addresses of localcloud; no key of an owner. Its engine reaches the bucket of states as the job's account, too.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel.engine.project.project import Project
from bezel.engine.run.command import pulumi_cli
from bezel.planner import make_plan
from bezel.rest import Credentials
from bezel_localcloud import seed
from bezel_localcloud.core.paths import PROJECT
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.client import plain
from localcloud_support.issuer import Issuer
from tests.support.bootstrap.setup_harness import SetupHarness
from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import SECONDS, Run
from tests.support.gitops import account_port
from tests.support.gitops.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSPHRASE = "not a secret"
# Claims of the jobs of each workflow, beside those of the repository.
PULL_REQUEST = {"event_name": "pull_request", "ref": "refs/pull/7/merge"}
MERGE = {"event_name": "push", "ref": "refs/heads/main", "environment": "dev"}
NIGHT = {"event_name": "schedule", "ref": "refs/heads/main"}
PREVIEWS, DEPLOYS = "BEZEL_PREVIEW_ACCOUNT", "BEZEL_DEPLOY_ACCOUNT"
_OF_THE_OWNER = ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "PULUMI_BACKEND_URL")


@dataclass
class Jobs:
    """A project, its set-up, and a checkout whose stacks jobs deploy.

    Attributes:
        pipeline: The checkout and the cloud.
        setup: Runs `bezel init` as the project's owner.
        issuer: The forge's issuer.
        variables: What the set-up printed.
    """

    pipeline: Pipeline
    setup: SetupHarness
    issuer: Issuer
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Jobs]:
        """A cloud and an issuer; nothing is set up."""
        pipeline = Pipeline.whole(folder)
        try:
            with Issuer() as issuer:
                issuer.claims |= {"sub": "repo:acme/llm", "repository": "acme/llm", "repository_id": "4711"}
                environment = {**pipeline.environment, "XDG_STATE_HOME": str(folder / "home")}
                environment["STORAGE_EMULATOR_HOST"] = pipeline.endpoint.emulator
                warm_python.environment(folder / ".venv")
                setup = SetupHarness(folder, pipeline.endpoint, pipeline.cloud, environment)
                yield cls(pipeline, setup, issuer)
        finally:
            pipeline.stop()

    def init(self, *more: str) -> Run:
        """Run `bezel init` as the owner, and read the variables that it prints."""
        run = self.setup.init("--issuer", self.issuer.url, *more)
        commands = [shlex.split(line) for line in run.text.splitlines() if line.startswith("    gh variable set")]
        self.variables = {command[3]: command[7] for command in commands} or self.variables
        return run

    def seed(self, *stacks: str) -> None:
        """Upload the models of stacks, as an owner does before the first deploy."""
        for stack in stacks:
            plan = make_plan(Project(self.pipeline.folder).configuration(stack), project=PROJECT, stack=stack)
            for path, model in {plan.weights.path: plan.model, **plan.weights.drafts}.items():
                files = synthetic_weights.model_files(model)
                seed.seed(self.pipeline.endpoint, str(plan.weights.bucket), path, files)

    @contextmanager
    def job(self, account: str, claims: dict[str, str]) -> Iterator[Job]:
        """A job that logs in to an account; `account` is the variable that names it."""
        values = self.pipeline.environment
        environment = {
            name: text
            for name, text in values.items()
            if name not in _OF_THE_OWNER and not name.startswith("CLOUDSDK_AUTH")
        }
        place = self.setup.folder / f"job-{len(list(self.setup.folder.glob('job-*')))}"
        place.mkdir()
        environment |= self.variables | self.issuer.environment()
        environment |= {"BEZEL_ACCOUNT": self.variables[account], "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE}
        environment |= {"RUNNER_TEMP": str(place), "GITHUB_ENV": str(place / "env")}
        before = dict(self.issuer.claims)
        self.issuer.claims |= claims
        try:
            job = Job(self, environment)
            yield job
        finally:
            self.issuer.claims = before
            job.close()

    def key(self) -> str:
        """Name of the key of the states' secrets."""
        ring = f"/cloudkms/v1/projects/{PROJECT}/locations/us-east4/keyRings/pulumi/cryptoKeys"
        (key,) = self.pipeline.cloud.http.get(ring).json()["cryptoKeys"]
        return str(key["name"])

    def crypt(self, verb: str, key: str, account: str) -> Run:
        """Encrypt or decrypt with the key as a job's account, as the engine's driver does, whose address is Google's.

        The code is the status of a refusal, else 0.
        """
        path = f"/cloudkms/v1/{key}"
        field = {"encrypt": "plaintext", "decrypt": "ciphertext"}[verb]
        sealed = self.pipeline.cloud.http.post(f"{path}:encrypt", json={"plaintext": "aGk="}).json()["ciphertext"]
        with self.job(account, PULL_REQUEST if account == PREVIEWS else MERGE) as job:
            assert job.login().code == 0
            headers = Credentials(environ=job.environment).headers()
            body = {field: sealed if verb == "decrypt" else "aGk="}
            answer = plain.post(f"{self.pipeline.endpoint.base}{path}:{verb}", json=body, headers=headers)
        return Run(0 if answer.is_success else answer.status_code, answer.text)

    def requests(self, start: int = 0) -> list[dict[str, Any]]:
        """The requests that the cloud has got, after the first `start`."""
        log = self.pipeline.endpoint.directory / "logs" / "wire.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()[start:]]


@dataclass
class Job:
    """One job: its environment, and its steps."""

    jobs: Jobs
    environment: dict[str, str]
    _port: AbstractContextManager[str] | None = None

    def login(self) -> Run:
        """Run `bezel ci login`, and let the later steps have what it leaves to them."""
        run = self.bezel("ci", "login")
        if run.code == 0:
            lines = (self.jobs.setup.folder / self.environment["GITHUB_ENV"]).read_text().splitlines()
            self.environment |= dict(line.split("=", 1) for line in lines)
            credentials = Credentials(environ=self.environment)
            self._port = account_port.serving(self.jobs.pipeline.endpoint.base, credentials.access_token)
            self.environment["STORAGE_EMULATOR_HOST"] = self._port.__enter__()
        return run

    def close(self) -> None:
        """End what the login began."""
        if self._port is not None:
            self._port.__exit__(None, None, None)

    def bezel(self, *arguments: str) -> Run:
        """Run `bezel` as a step."""
        owners, self.jobs.pipeline.environment = self.jobs.pipeline.environment, self.environment
        try:
            return self.jobs.pipeline.bezel(*arguments)
        finally:
            self.jobs.pipeline.environment = owners

    def pulumi(self, *arguments: str) -> Run:
        """Run `pulumi` as a step."""
        ended = subprocess.run(
            [pulumi_cli(), *arguments],
            cwd=self.jobs.pipeline.folder,
            env=self.environment | warm_python.variables(self.jobs.pipeline.folder),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Run(ended.returncode, ended.stdout + ended.stderr)


def callers(requests: list[dict[str, Any]]) -> set[str]:
    """Who sent requests; without the requests of localcloud's own processes and of nobody."""
    return {str(line["caller"]) for line in requests if line["caller"]}
