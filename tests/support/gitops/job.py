"""One job of the tests' runner: its checkout, its workflow for act, its identity, and its end.

Gitea gives one job without what it depends on: the results of those come with the task and are put in their place. A
matrix that is computed from them is expanded here, since Gitea reads matrices before any job has run. Jobs see this
process's environment, as on a self-hosted runner, and the address of an identity token with the claims of GitHub's,
where the job may have one. Leaves out the forge's protocol (`runner`).
"""

import base64
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

LABEL = "ubuntu-24.04"
JOB_SECONDS = 600.0
END_SECONDS = 20.0
NEEDED = {"RESULT_SUCCESS": "success", "RESULT_FAILURE": "failure", "RESULT_CANCELLED": "cancelled"}
COLLECTOR = "runner-collects"
# This machine has the languages, as a self-hosted runner does; the actions that install them are elsewhere.
LANGUAGES = ("actions/setup-go@", "actions/setup-node@")


@dataclass(frozen=True)
class Settings:
    """What a runner needs to know.

    Attributes:
        forge: The forge's address.
        registration: Token to register with.
        act: The program act.
        jobs: How many jobs run at once.
        issuer: Address and token of an issuer of identity tokens, as variables of a job; None without one.
    """

    forge: str
    registration: str
    act: str
    jobs: int = 2
    issuer: Mapping[str, str] | None = None


class Job:
    """One task: its checkout, its workflow for act, and its end."""

    def __init__(self, task: dict[str, Any], work: Path, settings: Settings) -> None:
        self.task, self.work, self.settings = task, work, settings
        self.context: dict[str, Any] = task["context"]
        self.payload = yaml.safe_load(base64.b64decode(task["workflowPayload"]))
        ((self.name, self.job),) = self.payload["jobs"].items()
        self.needs: dict[str, Any] = task.get("needs") or {}
        self.token = task["secrets"].get("GITHUB_TOKEN") or self.context["token"]
        # The path is the same for all jobs of a kind, as a runner's `_work/NAME/NAME` is.
        self.tree = work / "tree"

    def run(self) -> tuple[str, dict[str, str], str]:
        """Run it; return result, outputs and log."""
        self.check_out()
        self.prepare()
        environment = self.environment()
        arguments = ["-W", str(self.work / "job.yml"), "-C", str(self.tree), "-e", str(self.work / "event.json")]
        arguments += ["--job", COLLECTOR, "-P", f"{LABEL}=-self-hosted", "--no-cache-server", "--json"]
        arguments += ["--secret-file", str(self.work / "secrets"), "--var-file", str(self.work / "vars")]
        arguments += ["--env-file", str(self.work / "env"), "--actor", str(self.context["actor"]), "--pull=false"]
        arguments += ["--action-cache-path", str(self.work / "cache")]
        command = [self.settings.act, str(self.context["event_name"]), *arguments]
        with (self.work / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.tree, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(timeout=JOB_SECONDS)
            finally:
                end_group(process)
        collected = self.work / "collected.json"
        text = log_text((self.work / "log").read_text(errors="replace"))
        if not collected.exists():
            return "failure", {}, f"{text}\nact ended with {process.returncode}"
        ended = json.loads(collected.read_text())[self.name]
        return ended["result"], ended["outputs"], text

    def check_out(self) -> None:
        """The commit's tree with its history, without the token."""
        host = self.settings.forge.partition("://")[2]
        address = f"http://runner:{self.token}@{host}/{self.context['repository']}.git"
        git = ["git", "-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main"]
        for arguments in (
            ["init", "--quiet", str(self.tree)],
            ["-C", str(self.tree), "fetch", "--quiet", address, str(self.context["sha"])],
            ["-C", str(self.tree), "checkout", "--quiet", "FETCH_HEAD"],
            ["-C", str(self.tree), "fetch", "--quiet", address, "+refs/heads/*:refs/remotes/origin/*"],
            [
                "-C",
                str(self.tree),
                "remote",
                "add",
                "origin",
                f"{self.settings.forge}/{self.context['repository']}.git",
            ],
        ):
            ended = subprocess.run([*git, *arguments], capture_output=True, text=True, timeout=120, check=False)
            if ended.returncode:
                raise RuntimeError(ended.stderr.replace(self.token, "***"))

    def prepare(self) -> None:
        """Write the files that act reads."""
        original = self.as_written()
        computed = original.get("strategy", {}).get("matrix")
        if isinstance(computed, str):
            self.job["strategy"] = original["strategy"]
            self.job["name"] = self.name
        else:
            # Gitea writes it as text, which act refuses, and gives one entry of the matrix.
            self.job.get("strategy", {}).pop("fail-fast", None)
        # Text as well.
        self.job["timeout-minutes"] = int(self.job.get("timeout-minutes", 30))
        # The forge has seen to it, and writes its values as text, too.
        self.job.pop("concurrency", None)
        self.job["steps"] = [step for step in self.job["steps"] if not str(step.get("uses")).startswith(LANGUAGES)]
        # act copies the tree for steps without a directory; they run in the checkout itself.
        self.job["defaults"] = {"run": {"working-directory": str(self.tree)}}
        stubs = {name: stub(need) for name, need in self.needs.items()}
        if self.needs:
            self.job["needs"] = list(self.needs)
        collect = {
            "runs-on": LABEL,
            "needs": [self.name],
            "if": "always()",
            "steps": [
                {"run": f'printenv NEEDED > "{self.work}/collected.json"', "env": {"NEEDED": "${{ toJSON(needs) }}"}}
            ],
        }
        self.payload["jobs"] = {**stubs, self.name: self.job, COLLECTOR: collect}
        (self.work / "job.yml").write_text(yaml.safe_dump(self.payload, sort_keys=False))
        (self.work / "event.json").write_text(json.dumps(self.context["event"]))
        # Quoted: values may hold several lines.
        (self.work / "secrets").write_text(dotenv(self.task["secrets"] | {"GITHUB_TOKEN": self.token}))
        (self.work / "vars").write_text(dotenv(self.task.get("vars") or {}))
        (self.work / "env").write_text(dotenv(self.facts()))

    def as_written(self) -> dict[str, Any]:
        """The job as its workflow file has it; the forge leaves out what it does not know."""
        file = self.tree / ".github" / "workflows" / str(self.context["workflow"])
        jobs: dict[str, Any] = yaml.safe_load(file.read_text())["jobs"] if file.exists() else {}
        return jobs.get(self.name) or {}

    def facts(self) -> dict[str, str]:
        """The variables of the run that the forge gives to every job."""
        names = ("repository", "repository_owner", "run_id", "run_number", "ref", "ref_name", "ref_type", "base_ref")
        facts = {f"GITHUB_{name.upper()}": str(self.context[name]) for name in (*names, "head_ref", "run_attempt")}
        server = str(self.context["server_url"]).rstrip("/")
        facts |= {"GITHUB_SERVER_URL": server, "GITHUB_API_URL": str(self.context["api_url"]), "GITEA_ACTIONS": "true"}
        if self.settings.issuer and self.may_have_identity():
            facts |= self.identity(self.settings.issuer)
        return facts

    def identity(self, issuer: Mapping[str, str]) -> dict[str, str]:
        """The variables for identity tokens of this job, which the issuer makes with the claims of GitHub's."""
        context = self.context
        repository, event, ref = (str(context[name]) for name in ("repository", "event_name", "ref"))
        environment = self.environment_name()
        # The event of a schedule does not name it.
        about = httpx.get(
            f"{context['api_url']}/repos/{repository}",
            headers={"Authorization": f"token {self.token}"},
            timeout=30,
            trust_env=False,
        )
        subject = f"environment:{environment}" if environment else f"ref:{ref}"
        claims = {
            "sub": f"repo:{repository}:{'pull_request' if event == 'pull_request' else subject}",
            "repository": repository,
            "repository_id": str(about.raise_for_status().json()["id"]),
            "ref": ref,
            "event_name": event,
            "actor": str(context["actor"]),
            **({"environment": environment} if environment else {}),
        }
        address = issuer["ACTIONS_ID_TOKEN_REQUEST_URL"].partition("/token?")[0]
        headers = {"Authorization": f"Bearer {issuer['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"}
        answer = httpx.post(f"{address}/jobs", json=claims, headers=headers, timeout=30, trust_env=False)
        variables: dict[str, str] = answer.raise_for_status().json()
        return variables

    def environment_name(self) -> str:
        """The environment that the job names; "" for none."""
        named = str(self.as_written().get("environment") or "")
        if named != "${{ matrix.environment }}":
            return named
        matrices = [json.loads((need.get("outputs") or {}).get("matrix") or "{}") for need in self.needs.values()]
        environments = {row["environment"] for matrix in matrices for row in matrix.get("include", [])}
        if len(environments) > 1:
            raise RuntimeError(f"this runner has one identity for all entries of a matrix, not {sorted(environments)}")
        return environments.pop() if environments else ""

    def may_have_identity(self) -> bool:
        """As on GitHub: the job asks for `id-token: write`, and this is no pull request from a fork."""
        permissions = self.job.get("permissions", self.payload.get("permissions")) or {}
        request = self.context["event"].get("pull_request")
        from_fork = request is not None and request["head"]["repo"]["full_name"] != self.context["repository"]
        return not from_fork and isinstance(permissions, dict) and permissions.get("id-token") == "write"

    def environment(self) -> dict[str, str]:
        """This process's environment, with a home and a folder for temporary files of the job's own."""
        temporary = self.work / "tmp"
        temporary.mkdir()
        return dict(os.environ) | {"TMPDIR": str(temporary), "XDG_CONFIG_HOME": str(self.work / "config")}


def stub(need: Mapping[str, Any]) -> dict[str, Any]:
    """A job with the result and the outputs of one that ran before."""
    result = NEEDED.get(str(need.get("result")), "skipped")
    steps = [{"run": "true" if result == "success" else "false"}]
    job: dict[str, Any] = {"runs-on": LABEL, "outputs": need.get("outputs") or {}, "steps": steps}
    return job | ({"if": False} if result == "skipped" else {})


def dotenv(values: Mapping[str, str]) -> str:
    """Lines of a .env file."""
    return "".join(f"{name}={json.dumps(value)}\n" for name, value in values.items())


def log_text(text: str) -> str:
    """What the job's steps printed, and act's own messages."""
    lines = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        if isinstance(entry, dict) and str(entry.get("jobID")) != COLLECTOR and entry.get("level") != "debug":
            lines.append(str(entry.get("msg", "")).rstrip("\n"))
    return "\n".join(lines)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a job's processes that are still running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=END_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
