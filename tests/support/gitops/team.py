"""A team's repository on the tests' forge: the program with one stack, people, variables, branch protection, a runner.

Its jobs deploy to a localcloud, to which the runner's environment points, as a self-hosted runner's would; nothing in
the workflow files knows of it. Leaves out the forge (`forge`) and the runner (`runner`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bezel.engine.project.pipeline_file import FILE, read_pipeline
from bezel.engine.project.project import Project
from bezel_localcloud import control, seed
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.issuer import Issuer
from tests.support.gitops import forge as forges
from tests.support.gitops import foundation
from tests.support.gitops.forge import OWNER, Forge, add_user
from tests.support.gitops.machine import Machine, runner_of
from tests.support.gitops.pipeline import BACKEND, STATES, Pipeline
from tests.support.gitops.working_copy import WorkingCopy, tracked_files
from tests.support.stack_files import change_stack_file

STACK, CHAT = "l4-qat", "chat"
DEVELOPER, REVIEWER, STRANGER = "dev", "reviewer", "stranger"
PASSWORD = "not a secret 1"
PASSPHRASE = "planted-passphrase"
VERDICT = "preview / verdict (pull_request)"
# Workflows that the tests do not run: they would run the tests.
LEFT_OUT = ("check.yml", "release.yml")
RUN_SECONDS = 300.0
# What jobs see of this machine's environment: its programs, and how packages are reached.
_KEPT = frozenset(
    (
        *("LANG", "PATH", "USER", "GOFLAGS", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "PIP_INDEX_URL"),
        *("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    )
)
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
        password: Of the people.
        machines: Ends the machines of the runners.
        machine: The newest of them.
    """

    forge: Forge
    copy: WorkingCopy
    pipeline: Pipeline
    folder: Path
    act: Path
    issuer: Issuer
    before: Mapping[str, Any] = field(default_factory=dict)
    password: str = PASSWORD
    machines: ExitStack = field(default_factory=ExitStack)
    machine: Machine = field(init=False)

    def open(self, branch: str, title: str, *, user: str = DEVELOPER, head: str = "") -> int:
        """Open a pull request for a pushed branch; return its number."""
        body = {"title": title, "head": head or branch, "base": "main"}
        return int(self.forge.repository("POST", "/pulls", body, user=user)["number"])

    def set(self, path: str, value: object, stack: str = STACK) -> None:
        """Change one value of a stack file of the working copy; None removes it. `path`: `scaling.max_instances`."""
        change_stack_file(self.copy.folder / f"Pulumi.{stack}.yaml", path, value)

    def push(self, branch: str, message: str) -> str:
        """Commit and push the working copy as a branch; return the commit."""
        commit = self.copy.commit(message)
        self.copy.push(branch)
        return commit

    def wait_for_preview(self, commit: str) -> dict[str, Any]:
        """Wait for the end of the pull request's workflow on a commit."""
        return self.forge.wait_for_end("preview.yml", RUN_SECONDS, head_sha=commit)

    def approve(self, number: int) -> None:
        """Approve a pull request as the reviewer."""
        body = {"event": "APPROVED", "body": "fine"}
        self.forge.repository("POST", f"/pulls/{number}/reviews", body, user=REVIEWER)

    def try_merge(self, number: int, style: str = "merge") -> Any:
        """Try to merge; return the response."""
        return self.forge.repository("POST", f"/pulls/{number}/merge", {"Do": style}, ok=False)

    def merge(self, number: int, style: str = "merge") -> None:
        """Merge, as soon as the forge has checked the branch anew."""
        self.forge.wait_for(f"the merge of {number}", lambda: self.try_merge(number, style).status_code == 200)

    def run_workflow(self, workflow: str) -> dict[str, Any]:
        """Start a workflow that runs by the clock; return its run when it has ended."""
        count = len(self.forge.runs(workflow))
        self.forge.repository("POST", f"/actions/workflows/{workflow}/dispatches", {"ref": "main"})
        self.forge.wait_for(f"a run of {workflow}", lambda: len(self.forge.runs(workflow)) > count)
        return self.forge.wait_for_end(workflow, RUN_SECONDS)

    def run_again(self, run: Mapping[str, Any], job: str) -> None:
        """Run a job of a run again, with those that need it."""
        number = self.forge.jobs(run["id"])[job]["id"]
        self.forge.repository("POST", f"/actions/runs/{run['id']}/jobs/{number}/rerun")

    def conclusions(self, run: Mapping[str, Any]) -> dict[str, str]:
        """How the jobs of a run ended, by name."""
        return {name: job["conclusion"] for name, job in self.forge.jobs(run["id"]).items()}

    def press(self, button: str, run: Mapping[str, Any]) -> None:
        """Press a button of a run's page as the reviewer: `cancel`, `approve`. No API has these."""
        self.forge.press(f"/actions/runs/{run['id']}/{button}", REVIEWER, self.password)

    def inventory(self) -> dict[str, Any]:
        """What users made in the cloud, but for the states."""
        resources = control.inventory(self.pipeline.endpoint)
        made = {
            kind: sorted(name for name in resources[kind] if not name.startswith(f"{STATES}/")) for kind in resources
        }
        return {kind: names for kind, names in made.items() if names}

    def services(self, stack: str) -> list[str]:
        """Names of the services of a stack."""
        return [name for name in self.inventory().get("services", []) if stack in name]

    def state(self, stack: str) -> dict[str, Any]:
        """The newest state of a stack; {} before its first deploy."""
        name = f".pulumi/stacks/bezel/{stack}.json"
        if name not in self.pipeline.objects(name):
            return {}
        state: dict[str, Any] = self.pipeline.read(name)["checkpoint"].get("latest") or {}
        return state

    def log(self, run: Mapping[str, Any]) -> str:
        """What the jobs of a run printed."""
        return self.forge.log_of(run["id"])

    def job_environment(self) -> dict[str, str]:
        """The runner's environment: this machine's tools and caches, and where the cloud is."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT}
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        variables = self.pipeline.environment
        # These come from the repository's variables and secrets, and an account from the job's login.
        elsewhere = {"PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS"}
        own_variables = {
            name: variables[name]
            for name in variables
            if name not in elsewhere and not name.startswith("CLOUDSDK_AUTH")
        }
        uv = os.environ.get("UV_CACHE_DIR") or f"{cache}/uv"
        return (
            kept
            | own_variables
            | {"XDG_CACHE_HOME": cache, "UV_CACHE_DIR": uv, "PATH": f"{variables['PATH']}:{kept['PATH']}"}
        )

    def start_machine(self, *, ahead_seconds: int = 0) -> None:
        """Start a machine with a runner of the repository, which ends with the team; its clock may be ahead."""
        place = self.folder / f"runner-{len(list(self.folder.glob('runner-*')))}"
        issuer = self.issuer.environment()
        runner = runner_of(
            self.forge, place, self.act, self.job_environment(), issuer=issuer, jobs=3, ahead_seconds=ahead_seconds
        )
        self.machine = self.machines.enter_context(runner)


def _add_chat(copy: WorkingCopy) -> None:
    """Commit a second stack of the pipeline, in a region with a quota of its own; nothing deploys it yet."""
    file = copy.folder / f"Pulumi.{STACK}.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"] |= {"bezel:region": "europe-west4", "bezel:scaling": {"max_instances": 1}}
    content["config"]["bezel:vllm"]["max-num-seqs"] = 4
    copy.write(f"Pulumi.{CHAT}.yaml", yaml.safe_dump(content, sort_keys=False))
    pipeline = (copy.folder / FILE).read_text()
    copy.write(FILE, pipeline.replace("[stacks]\n", f'[stacks]\n{CHAT} = "dev"\n'))
    copy.commit("Add a stack")


def _copy_of_clone(folder: Path, remote: str) -> WorkingCopy:
    """A working copy of this clone with one stack, and a second one that nothing deploys yet."""
    stacks = [name for name in tracked_files() if name.startswith("Pulumi.") and name.count(".") == 2]
    files = [name for name in tracked_files() if name not in stacks or name == f"Pulumi.{STACK}.yaml"]
    copy = WorkingCopy.of(folder, remote, files, DEVELOPER)
    _add_chat(copy)
    return copy


@contextmanager
def running_team(
    gitea: Path,
    act: Path,
    folder: Path,
    password: str = PASSWORD,
    show: Callable[[str], None] = lambda _line: None,
    project: Path | None = None,
) -> Iterator[Team]:
    """A forge with the repository of a team, its cloud, and a runner; all of them end with the context.

    Args:
        gitea: The folder of the program Gitea.
        act: The program act.
        folder: The place of everything.
        password: Of the people.
        show: Gets a line for each step.
        project: Folder of a project of one's own, whose last commit becomes `main`; None for this clone.
    """
    show("starting the forge")
    with forges.running(gitea, folder / "gitea") as forge, Issuer() as issuer:
        forge.name = Project(project).name if project else forge.name
        forge.call("POST", "/user/repos", {"name": forge.name, "default_branch": "main", "private": False})
        try:
            team = found_team(forge, folder, act, issuer, password, show, project)
            with team.machines:
                show("starting a runner")
                team.start_machine()
                yield team
        finally:
            control.stop(folder / "pipeline" / "cloud")  # of a start that was broken off as well


def found_team(
    forge: Forge,
    folder: Path,
    act: Path,
    issuer: Issuer,
    password: str,
    show: Callable[[str], None],
    project: Path | None = None,
) -> Team:
    """Make the repository with its people, variables and protection; `forge` has it empty.

    Arguments as of `running_team`.
    """
    show("starting the embedded cloud")
    (folder / "pipeline").mkdir()
    pipeline = Pipeline.whole(folder / "pipeline")
    for name in (DEVELOPER, REVIEWER, STRANGER):
        add_user(forge, name, password)
    for name in (DEVELOPER, REVIEWER):
        forge.repository("PUT", f"/collaborators/{name}", {"permission": "write"})
    show("pushing the program")
    remote = forge.address(DEVELOPER)
    copy = WorkingCopy(project, remote, DEVELOPER) if project else _copy_of_clone(folder / "copy", remote)
    # Without Actions at first: a push of all workflows would run the tests, and these among them.
    forge.repository("PATCH", "", {"has_actions": False})
    copy.git("push", "--quiet", forge.address(OWNER), "HEAD:refs/heads/main")
    # The forge knows the branch a moment after the push.
    forge.wait_for("the pushed branch", lambda: not forge.repository("GET", "")["empty"])
    forge.wait_for("its commit", lambda: forge.repository("GET", "/branches/main", ok=False).is_success)
    forge.repository("PATCH", "", {"has_actions": True})
    for workflow in () if project else LEFT_OUT:
        forge.repository("PUT", f"/actions/workflows/{workflow}/disable")
    show("making the accounts of the pipeline, and the protection of the branch")
    number = str(forge.repository("GET", "")["id"])
    variables = {
        "GOOGLE_PROJECT": pipeline.environment["GOOGLE_PROJECT"],
        "PULUMI_BACKEND_URL": BACKEND,
        "PULUMI_SECRETS_PROVIDER": "passphrase",
        **foundation.lay(pipeline, issuer.url, f"{OWNER}/{forge.name}", number),
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
    if project:
        pipeline.seed(*read_pipeline(Project(project)).stacks, project=Project(project))
    else:
        weights = synthetic_weights.model_files("gemma-4-12b-it-qat-w4a16")
        seed.seed(pipeline.endpoint, "bezel-local-models", MODEL, weights)
    team = Team(forge, copy, pipeline, folder, act, issuer, password=password)
    team.before = team.inventory()
    return team
