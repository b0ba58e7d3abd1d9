"""A Gitea of the tests' own: started on loopback in a folder, with users, repositories and REST calls.

Leaves out the runner of its jobs (`runner`) and what is deployed (`pipeline`).
"""

import contextlib
import getpass
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bezel_base import ending_signals
from bezel_base.loopback.listeners import free_port

START_SECONDS = 60.0
# Waits for its own queues, in which commit statuses and pull requests are worked on.
SETTLE_SECONDS = 60.0
OWNER = "team"
REPOSITORY = "gemma"
_SETTINGS = """\
APP_NAME = forge
RUN_USER = {user}
RUN_MODE = prod
WORK_PATH = {folder}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
STATIC_ROOT_PATH = {program}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[repository]
ROOT = {folder}/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = {key}
INTERNAL_TOKEN = {key}
PASSWORD_HASH_ALGO = pbkdf2_v1
[oauth2]
ENABLED = false
[actions]
ENABLED = true
[cron.update_checker]
ENABLED = false
[cron.start_schedule_tasks]
ENABLED = false
[service]
DISABLE_REGISTRATION = true
[picture]
DISABLE_GRAVATAR = true
[indexer]
ISSUE_INDEXER_TYPE = db
[session]
PROVIDER = memory
[log]
MODE = file
LEVEL = Info
ROOT_PATH = {folder}/log
"""


class ForgeError(AssertionError):
    """The forge did not do what a test asked for; the text holds its answer."""


@dataclass
class Forge:
    """A running Gitea.

    Attributes:
        folder: Its data.
        url: Its address.
        tokens: The access token of each user.
        name: Of the repository.
    """

    folder: Path
    url: str
    tokens: dict[str, str] = field(default_factory=dict)
    name: str = REPOSITORY

    def call(self, method: str, path: str, body: Any = None, *, user: str = OWNER, ok: bool = True) -> Any:
        """Call the REST API as a user; return the answer's JSON, or the response where `ok` is False."""
        headers = {"Authorization": f"token {self.tokens[user]}"}
        response = httpx.request(
            method, f"{self.url}/api/v1{path}", json=body, headers=headers, timeout=30, trust_env=False
        )
        if not ok:
            return response
        if not response.is_success:
            raise ForgeError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def repository(self, method: str, path: str, body: Any = None, *, user: str = OWNER, ok: bool = True) -> Any:
        """Call an API of the repository; `path` starts below it."""
        return self.call(method, f"/repos/{OWNER}/{self.name}{path}", body, user=user, ok=ok)

    def press(self, path: str, user: str, password: str) -> None:
        """Do what only a page of the repository offers, as a user who has logged in there."""
        with httpx.Client(base_url=self.url, timeout=30, trust_env=False) as browser:
            browser.post("/user/login", data={"user_name": user, "password": password})
            answer = browser.post(f"/{OWNER}/{self.name}{path}")
        if not answer.is_success:
            raise ForgeError(f"{path}: {answer.status_code} {answer.text[-2000:]}")

    def address(self, user: str = OWNER, *, owner: str = OWNER) -> str:
        """Address of the repository, or of a fork's, for git, with the user's token."""
        scheme, _, host = self.url.partition("://")
        return f"{scheme}://{user}:{self.tokens[user]}@{host}/{owner}/{self.name}.git"

    def wait_for(self, what: str, condition: Any, seconds: float = SETTLE_SECONDS) -> Any:
        """Call `condition` until it returns something true; return that.

        Raises:
            ForgeError: It did not within the time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.2)
        raise ForgeError(f"not within {seconds:g} s: {what}")

    def runs(self, workflow: str, **facts: object) -> list[dict[str, Any]]:
        """The runs of a workflow file, the newest first, whose facts (`head_sha`, `event`, ...) are these."""
        runs = self.repository("GET", "/actions/runs?limit=50")["workflow_runs"]
        named = (run for run in runs if run["path"].partition("@")[0] == workflow)
        return [run for run in named if all(run[key] == value for key, value in facts.items())]

    def wait_for_end(self, workflow: str, seconds: float, **facts: object) -> dict[str, Any]:
        """Wait until the newest run of a workflow, with these facts, has ended; return it."""

        def newest() -> dict[str, Any] | None:
            runs = self.runs(workflow, **facts)
            # A run whose first job failed counts as completed before the jobs that always run have begun.
            over = runs and all(job["status"] == "completed" for job in self.jobs(runs[0]["id"]).values())
            return runs[0] if over and runs[0]["status"] == "completed" else None

        try:
            run: dict[str, Any] = self.wait_for(f"the end of {workflow} {facts}", newest, seconds)
        except ForgeError as error:
            logs = [self.log_of(run["id"]) for run in self.runs(workflow, **facts)[:1]]
            raise ForgeError(f"{error}\n{''.join(logs)}") from error
        return run

    def jobs(self, run: int) -> dict[str, dict[str, Any]]:
        """The jobs of a run, by name."""
        return {
            job["name"]: {"conclusion": ""} | job for job in self.repository("GET", f"/actions/runs/{run}/jobs")["jobs"]
        }

    def log_of(self, run: int) -> str:
        """What all jobs of a run printed."""
        texts = []
        for name, job in self.jobs(run).items():
            log = self.repository("GET", f"/actions/jobs/{job['id']}/logs", ok=False)
            texts.append(f"--- {name} ({job['conclusion'] or job['status']})\n{log.text if log.is_success else ''}\n")
        return "".join(texts)


@contextlib.contextmanager
def running(program: Path, folder: Path) -> Iterator[Forge]:
    """A Gitea on a free port with an administrator, `team`; `program` is the folder of `go_programs.find("gitea")`."""
    folder.mkdir(parents=True)
    port = free_port()
    user = getpass.getuser()
    settings = folder / "app.ini"
    settings.write_text(
        _SETTINGS.format(user=user, folder=folder, port=port, program=program, key=secrets.token_hex(32))
    )
    environment = _environment(folder, user)
    command = [str(program / "gitea"), "--config", str(settings)]
    with ending_signals.handle(), _running_program([*command, "web"], environment, folder / "output") as process:
        forge = Forge(folder, f"http://127.0.0.1:{port}")
        forge.wait_for("the forge's start", lambda: _is_ready(forge.url, process, folder), START_SECONDS)
        make = ["admin", "user", "create", "--admin", "--username", OWNER, "--email", f"{OWNER}@forge.test"]
        make += ["--random-password", "--must-change-password=false", "--access-token", "--access-token-scopes", "all"]
        made = subprocess.run(
            [*command, *make], env=environment, capture_output=True, text=True, timeout=START_SECONDS, check=True
        )
        forge.tokens[OWNER] = made.stdout.split("Access token was successfully created... ")[1].split()[0]
        yield forge


@contextlib.contextmanager
def _running_program(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program in a session of its own, which ends with the context."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        _end(process)


def add_user(forge: Forge, name: str, password: str) -> None:
    """Add a user with a token of their own."""
    body = {"username": name, "password": password, "email": f"{name}@forge.test", "must_change_password": False}
    forge.call("POST", "/admin/users", body)
    answer = httpx.post(
        f"{forge.url}/api/v1/users/{name}/tokens",
        json={"name": "tests", "scopes": ["all"]},
        auth=(name, password),
        timeout=60,
        trust_env=False,
    )
    forge.tokens[name] = answer.raise_for_status().json()["sha1"]


def _environment(folder: Path, user: str) -> Mapping[str, str]:
    passed_on = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    # git reads nobody's settings.
    variables = {"HOME": str(folder), "USER": user, "GITEA_WORK_DIR": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return passed_on | variables


def _is_ready(url: str, process: "subprocess.Popen[bytes]", folder: Path) -> bool:
    if process.poll() is not None:
        raise ForgeError(f"the forge ended with {process.returncode}:\n{(folder / 'output').read_text()[-4000:]}")
    try:
        return httpx.get(f"{url}/api/healthz", timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 20)):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                continue
