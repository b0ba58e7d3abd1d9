"""Start, stop and find the daemon of a directory, and return the variables that point clients to it.

Safe when two processes start it at once (the second finds the first one's daemon), after a kill (a start continues with
the data), and when a process id has been reused (the daemon's lock decides).
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError
from bezel_base.loopback.plain_http import NO_TLS
from bezel_base.process_status import has_ended, is_running
from bezel_localcloud.core.files.locks import hold_lock, is_locked
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import (
    CONTROL_AUDIENCE,
    HUB_PREFIX,
    PROJECT_VARIABLE,
    Endpoint,
    Paths,
    engine_of,
    fingerprint,
    python_path,
)
from bezel_localcloud.project_id import project_for

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_REPORTED_AFTER_SECONDS = 2.0
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|VIRTUAL_ENV|PYTHON[A-Z]+"
    r"|LOCALCLOUD_VLLM_MODEL"
)


Report = Callable[[str], None]


class ControlError(UserError):
    """The daemon did not start or stop; the text holds the last lines of its log."""


def start(
    directory: Path,
    *,
    server: Literal["sim", "vllm"] = "sim",
    speed: float = 60,
    port: int = 0,
    parent: int = 0,
    project: str = "",
    report: Report | None = None,
) -> Endpoint:
    """Return the running daemon of a directory, started if there is none.

    A daemon with another server, model or speed, or with older code, is stopped first; its data stays.

    Args:
        directory: The data directory.
        server: Server behind each revision.
        speed: Factor by which the platform's waits are shortened.
        port: Port of a daemon that is started; 0 for the directory's last one, or any.
        parent: Process with whose end a daemon that is started ends too; 0 for none.
        project: Id of the project of a new directory; "" for the usual one.
        report: Called with a line that says what is waited for, from another thread, once that takes a while.

    Raises:
        WrongValueError: If the directory holds another project.
        ControlError: If it does not become ready within a minute.
    """
    command = [sys.executable, "-m", "bezel_localcloud", str(directory.resolve())]
    command += ["--server", server, "--speed", f"{speed:g}", "--port", str(port), "--parent", str(parent)]
    variables = {PROJECT_VARIABLE: project_for(directory, project)}
    return launch(directory, command, kind(server, speed), variables, report)


def kind(server: str, speed: float) -> tuple[str, float, str, str]:
    """Return the `kind` of a daemon that would be started with these settings."""
    return server, speed, engine_of(server), fingerprint()


def launch(
    directory: Path,
    command: Sequence[str],
    required: tuple[str, float, str, str] | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    report: Report | None = None,
) -> Endpoint:
    """As `start`, with the daemon's command line spelled out.

    Args:
        directory: The data directory.
        command: The command line.
        required: The `kind` that a running one must have, None if any will do.
        variables: Further variables of the daemon.
        report: As in `start`.

    Raises:
        DirectoryError: If the directory belongs to another user.
        ControlError: If the daemon does not become ready within a minute.
    """
    layout = Paths(directory.resolve())
    layout.create()
    with _exclusive(layout, report):
        running = _wait_until_settled(layout)
        if running and required in {None, running.kind}:
            return running
        if running:
            _end(running)
        ready = ended = process = None
        try:
            with (
                os.fdopen(os.open(layout.daemon_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as log,
                ending_signals.held_back(),  # an interrupt within Popen would leave a process without a name
            ):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env={**_environment(), **variables},
                    cwd=layout.root,
                )
            deadline = time.monotonic() + _START_SECONDS
            text = f"localcloud in {layout.root} starts: waiting until it responds, for at most {_START_SECONDS:g} s"
            with _report_wait(report, text):
                while not ready and ended is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                    endpoint = Endpoint.read(layout.root)
                    ready = endpoint if endpoint and endpoint.pid == process.pid else None
                    ended = process.poll()
            if ready:
                return ready
        finally:
            if (
                process and not ready
            ):  # a caller that is interrupted meanwhile has no daemon's name, and could not end it
                process.kill()
                process.wait()
        cause = f"exited with status {ended}" if ended is not None else f"was not ready after {_START_SECONDS:g} s"
        text = (
            f"localcloud did not start: its daemon {cause}. Last lines of {layout.daemon_log}:\n"
            f"{_last_lines(layout.daemon_log)}"
        )
        raise ControlError(Problem(str(layout.root), None, text, "repair what these lines name, then run it again."))


def stop(directory: Path) -> None:
    """Stop the daemon of a directory with everything that it started; the data stays. No daemon is no error."""
    layout = Paths(directory.resolve())
    if not layout.root.is_dir():
        return
    with _exclusive(layout):
        if running := _wait_until_settled(layout):
            _end(running)


def status(directory: Path) -> Endpoint | None:
    """The running daemon of a directory, or None."""
    layout = Paths(directory.resolve())
    return _running(layout) if is_locked(layout.daemon_lock) else None


def environment(endpoint: Endpoint) -> dict[str, str]:
    """Return the variables that point Google's tools, the provider and the program to this localcloud."""
    variables = {
        "GOOGLE_CLOUD_PROJECT": endpoint.project,
        "GOOGLE_PROJECT": endpoint.project,
        "GOOGLE_APPLICATION_CREDENTIALS": str(endpoint.credentials),
        "BEZEL_REGISTRY_ENDPOINT": endpoint.base,
        "BEZEL_BALANCERS": f"{endpoint.base}/localcloud/balancers",
        "HF_ENDPOINT": f"{endpoint.base}{HUB_PREFIX}",
        # Clients that wait for capacity measure in the platform's seconds, which pass faster.
        "BEZEL_SPEED": f"{endpoint.speed:g}",
    }
    paths = tomllib.loads((Path(__file__).parent / "data" / "endpoints.toml").read_text(encoding="utf-8"))
    variables |= {f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{endpoint.base}/{path}/" for api, path in paths.items()}
    return variables | ({"BEZEL_SIMULATED": "1"} if endpoint.server == "sim" else {})


def access_token(endpoint: Endpoint) -> str:
    """An access token of the deployer, from its key file.

    Raises:
        httpx.HTTPError: If the daemon does not return one.
    """
    return str(_request_grant(endpoint, {"scope": "https://www.googleapis.com/auth/cloud-platform"})["access_token"])


def identity_token(endpoint: Endpoint, audience: str) -> str:
    """An identity token of the deployer for an audience, such as the URL of a service, from its key file.

    Raises:
        httpx.HTTPError: If the daemon does not return one.
    """
    return str(_request_grant(endpoint, {"target_audience": audience})["id_token"])


def _request_grant(endpoint: Endpoint, claims: Json) -> Json:
    """What the token endpoint returns for an assertion with these claims."""
    # Imported late, here and below: most commands send no request themselves.
    import httpx

    key_file = json.loads(endpoint.credentials.read_text(encoding="utf-8"))
    uri = key_file["token_uri"]
    assertion = _sign_claims(key_file, {"aud": uri, **claims}, 3600)
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
    response = httpx.post(uri, data=form, timeout=30, trust_env=False, verify=NO_TLS).raise_for_status()
    return dict(response.json())


def own_token(endpoint: Endpoint) -> str:
    """A token for localcloud's own routes (below /localcloud/), signed here: no fault blocks it."""
    return _sign_claims(json.loads(endpoint.credentials.read_text(encoding="utf-8")), {"aud": CONTROL_AUDIENCE}, 300)


def _sign_claims(key_file: Json, claims: Json, seconds: int) -> str:
    """A JSON Web Token of a key file's account, valid for some seconds."""
    from bezel_localcloud.access.credentials import keys

    now = int(time.time())
    claims |= {"iss": key_file["client_email"], "iat": now, "exp": now + seconds}
    return keys.sign(claims, keys.load_private(key_file["private_key"]))


def inventory(endpoint: Endpoint) -> Json:
    """Names of all resources that users created and that still exist, by kind; {} when nothing is left.

    Raises:
        httpx.HTTPError: If the daemon does not respond.
    """
    import httpx

    headers = {"Authorization": f"Bearer {own_token(endpoint)}"}
    url = f"{endpoint.base}/localcloud/resources"
    response = httpx.get(url, headers=headers, timeout=30, trust_env=False, verify=NO_TLS).raise_for_status()
    return dict(response.json())


def _wait_until_settled(layout: Paths) -> Endpoint | None:
    """Return the running daemon; wait for one that is starting or stopping (its starter was killed, say)."""
    deadline = time.monotonic() + _STOP_SECONDS
    while is_locked(layout.daemon_lock):
        # The lock of a killed daemon may live on for a moment: with it, or in a child that it had just forked.
        if running := _running(layout):
            return running
        if time.monotonic() > deadline:
            text = f"is locked by a daemon, but {layout.endpoint} does not name its process."
            raise ControlError(Problem(str(layout.daemon_lock), None, text, "end that process, then run it again."))
        time.sleep(0.02)
    return None


def _running(layout: Paths) -> Endpoint | None:
    endpoint = Endpoint.read(layout.root)
    return endpoint if endpoint and _is_there(endpoint.pid) and is_running(endpoint.pid) else None


def _end(endpoint: Endpoint) -> None:
    lock = Paths(endpoint.directory).daemon_lock
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(endpoint.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + _STOP_SECONDS
        while (is_locked(lock) or _is_there(endpoint.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not is_locked(lock):
            break
    Paths(endpoint.directory).endpoint.unlink(missing_ok=True)


def _is_there(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) == (0, 0)  # a child of this process: no other process reaps its exit status
    return not has_ended(pid)


def _last_lines(log: Path, count: int = 15) -> str:
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
    except FileNotFoundError:  # the folder was deleted while the daemon started
        return "(no log)"


@contextmanager
def _exclusive(layout: Paths, report: Report | None = None) -> Iterator[None]:
    """Hold the lock of those who start or stop the daemon of a directory."""
    seconds = _START_SECONDS + 2 * _STOP_SECONDS
    text = f"another command has been starting or stopping this localcloud for more than {seconds:g} s."
    problem = Problem(str(layout.root), None, text, "end that command, then run it again.")
    waiting = f"another command starts or stops localcloud in {layout.root}: waiting for it, for at most {seconds:g} s"
    with ExitStack() as stack:
        with _report_wait(report, waiting):
            stack.enter_context(hold_lock(layout.start_lock, seconds, lambda: ControlError(problem)))
        yield


@contextmanager
def _report_wait(report: Report | None, text: str) -> Iterator[None]:
    """Report a wait that takes a while."""
    timer = threading.Timer(_REPORTED_AFTER_SECONDS, report or str, [text])
    timer.daemon = True
    if report:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _environment() -> dict[str, str]:
    """Return the caller's variables that an interpreter and a real engine need.

    The daemon outlives its caller by days, and its environment is readable in /proc: no passphrase or token belongs
    there.
    """
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    return passed_on | {"PYTHONPATH": python_path(os.environ.get("PYTHONPATH"))}
