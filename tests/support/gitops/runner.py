"""A runner for Gitea's jobs: `python -m tests.support.gitops.runner FOLDER`, its settings in FOLDER/runner.json.

Takes a task from the forge, checks its commit out as `actions/checkout` would, lets act run the job on this machine,
and reports log, outputs and result. Gitea gives one job without what it depends on: the results of those come with the
task and are put in their place. A matrix that is computed from them is expanded here, since Gitea reads matrices before
any job has run. Jobs see this process's environment, as on a self-hosted runner, and an identity token's address where
the job may have one. Leaves out the forge (`forge`).
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

LABEL = "ubuntu-24.04"
POLL_SECONDS = 0.3
JOB_SECONDS = 600.0
CALL_SECONDS = 60.0
END_SECONDS = 20.0
RESULTS = {"success": "RESULT_SUCCESS", "failure": "RESULT_FAILURE", "cancelled": "RESULT_CANCELLED"}
NEEDED = {"RESULT_SUCCESS": "success", "RESULT_FAILURE": "failure", "RESULT_CANCELLED": "cancelled"}
COLLECTOR = "runner-collects"


@dataclass(frozen=True)
class Settings:
    """What a runner needs to know.

    Attributes:
        forge: The forge's address.
        registration: Token to register with.
        act: The program act.
        jobs: How many jobs run at once.
        issuer: Address and token to request identity tokens from; {} for none.
    """

    forge: str
    registration: str
    act: str
    jobs: int = 2
    issuer: Mapping[str, str] | None = None


class Runner:
    """A registered runner."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.client = httpx.Client(
            base_url=f"{settings.forge}/api/actions/runner.v1.RunnerService", timeout=30, trust_env=False
        )
        body = {"name": folder.name, "token": settings.registration, "labels": [LABEL], "version": "tests"}
        answer = self.call("Register", body)["runner"]
        self.client.headers.update({"x-runner-uuid": answer["uuid"], "x-runner-token": answer["token"]})
        self.call("Declare", {"labels": [LABEL], "version": "tests"})

    def call(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of the runner's protocol: Connect with JSON."""
        end = time.monotonic() + CALL_SECONDS
        while True:
            try:
                response = self.client.post(f"/{method}", json=body)
                response.raise_for_status()
            except httpx.HTTPError as error:
                # The forge's database is locked now and then; a runner asks again.
                print(method, repr(error), file=sys.stderr, flush=True)
                if time.monotonic() > end:
                    raise
                time.sleep(POLL_SECONDS)
            else:
                answer: dict[str, Any] = response.json()
                return answer

    def serve(self) -> None:
        """Take and run tasks until this process is ended."""
        with ThreadPoolExecutor(self.settings.jobs) as pool:
            running: list[Any] = []
            while True:
                running = [future for future in running if not future.done()]
                # With version 0 the forge always looks for a task.
                if len(running) < self.settings.jobs and (
                    task := self.call("FetchTask", {"tasksVersion": 0}).get("task")
                ):
                    running.append(pool.submit(self.run, task))
                else:
                    time.sleep(POLL_SECONDS)

    def run(self, task: dict[str, Any]) -> None:
        """Run one task and report it."""
        started = now()
        work = Path(tempfile.mkdtemp(prefix=f"job-{task['id']}-", dir=self.folder))
        result, outputs, log = "failure", {}, ""
        try:
            job = Job(task, work, self.settings)
            result, outputs, log = job.run()
        except Exception as error:  # noqa: BLE001 -- whatever it was, the forge is told
            log += f"the runner failed: {error!r}"
        finally:
            shutil.rmtree(work, ignore_errors=True)
        rows = [{"time": started, "content": line} for line in log.splitlines()]
        self.call("UpdateLog", {"taskId": task["id"], "index": "0", "rows": rows, "noMore": True})
        state = {
            "id": task["id"],
            "result": RESULTS.get(result, "RESULT_SKIPPED"),
            "startedAt": started,
            "stoppedAt": now(),
        }
        self.call("UpdateTask", {"state": state, "outputs": outputs})


class Job:
    """One task: its checkout, its workflow for act, and its end."""

    def __init__(self, task: dict[str, Any], work: Path, settings: Settings) -> None:
        self.task, self.work, self.settings = task, work, settings
        self.context: dict[str, Any] = task["context"]
        self.payload = yaml.safe_load(base64.b64decode(task["workflowPayload"]))
        ((self.name, self.job),) = self.payload["jobs"].items()
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
        needs = self.task.get("needs") or {}
        written = self.tree / ".github" / "workflows" / str(self.context["workflow"])
        original = yaml.safe_load(written.read_text())["jobs"].get(self.name, {}) if written.exists() else {}
        computed = original.get("strategy", {}).get("matrix")
        if isinstance(computed, str):
            self.job["strategy"] = original["strategy"]
            self.job["name"] = self.name
        # Gitea writes it as text, which act refuses.
        self.job["timeout-minutes"] = int(self.job.get("timeout-minutes", 30))
        # The forge has seen to it, and writes its values as text, too.
        self.job.pop("concurrency", None)
        # act copies the tree for steps without a directory; they run in the checkout itself.
        self.job["defaults"] = {"run": {"working-directory": str(self.tree)}}
        stubs = {name: stub(need) for name, need in needs.items()}
        if needs:
            self.job["needs"] = list(needs)
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

    def facts(self) -> dict[str, str]:
        """The variables of the run that the forge gives to every job."""
        names = ("repository", "repository_owner", "run_id", "run_number", "ref", "ref_name", "ref_type", "base_ref")
        facts = {f"GITHUB_{name.upper()}": str(self.context[name]) for name in (*names, "head_ref", "run_attempt")}
        server = str(self.context["server_url"]).rstrip("/")
        facts |= {"GITHUB_SERVER_URL": server, "GITHUB_API_URL": str(self.context["api_url"]), "GITEA_ACTIONS": "true"}
        if self.settings.issuer and self.may_have_identity():
            facts |= self.settings.issuer
        return facts

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


def now() -> str:
    """The time, as the protocol writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    place = Path(sys.argv[1])
    Runner(place, Settings(**json.loads((place / "runner.json").read_text()))).serve()
