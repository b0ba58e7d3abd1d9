"""Start, stop and find the daemon of a directory, and return the variables that point clients to it.

Safe when two processes start it at once (the second finds the first one's daemon), after a kill (a start continues with
the data), and when a process id has been reused (the daemon's lock decides).
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from bezel.errors import UserError
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.locks import is_locked, locked
from bezel.localcloud.core.paths import CONTROL_AUDIENCE, HUB_PREFIX, DirectoryError, Endpoint, Paths, engine_of
from bezel.localcloud.fingerprint import fingerprint
from bezel.localcloud.processes.process_status import is_running
from bezel.loopback.plain_http import NO_TLS

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|VIRTUAL_ENV|PYTHON[A-Z]+"
    r"|LOCALCLOUD_VLLM_MODEL"
)
# The Google provider's own names -> path prefix here.
_OVERRIDES = {
    "CLOUD_RUN_V2": "run/v2",
    "STORAGE": "storage/v1",
    "IAM": "iam/v1",
    "IAM_BETA": "iam/v1",  # the only one that the provider reads for service accounts since 7.40
    "IAM_CREDENTIALS": "iamcredentials/v1",
    "SECRET_MANAGER": "secretmanager/v1",
    "ARTIFACT_REGISTRY": "artifactregistry/v1",
    "SERVICE_USAGE": "serviceusage/v1",
    "RESOURCE_MANAGER": "crm/v1",
    "LOGGING": "logging/v2",
    "COMPUTE": "compute/v1",
    "MONITORING": "monitoring",
    "TPU_V2ALPHA1": "tpu/v2alpha1",
    "CLOUD_QUOTAS": "cloudquotas/v1",
}


class ControlError(UserError):
    """The daemon did not start or stop; the text holds the last lines of its log."""


def start(directory: Path, *, server: Literal["sim", "vllm"] = "sim", speed: float = 60) -> Endpoint:
    """Return the running daemon of a directory, started if there is none.

    A daemon with another server, model or speed, or with older code, is stopped first; its data stays.

    Raises:
        ControlError: If it does not become ready within a minute.
    """
    options = ["--server", server, "--speed", f"{speed:g}"]
    return launch(
        directory,
        [sys.executable, "-m", "bezel.localcloud", str(directory.resolve()), *options],
        kind(server, speed),
    )


def kind(server: str, speed: float) -> tuple[str, float, str, str]:
    """Return the `kind` of a daemon that would be started with these settings."""
    return server, speed, engine_of(server), fingerprint()


def launch(directory: Path, command: Sequence[str], wanted: tuple[str, float, str, str] | None = None) -> Endpoint:
    """As `start`, with the daemon's command line spelled out.

    `wanted` is the `kind` that a running one must have, None if any will do.

    Raises:
        ControlError: If the directory belongs to another user, or it does not become ready within a minute.
    """
    layout = Paths(directory.resolve())
    try:
        layout.create()
    except DirectoryError as error:
        raise ControlError(str(error)) from None
    with _exclusive(layout):
        found = _settled(layout)
        if found and wanted in {None, found.kind}:
            return found
        if found:
            _end(found)
        with os.fdopen(os.open(layout.daemon_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_environment(),
                cwd=layout.root,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            told = Endpoint.read(layout.root)
            if told and told.pid == process.pid:
                return told
            if process.poll() is not None:
                break
            time.sleep(0.02)
        ended = process.poll()
        if ended is None:
            process.kill()
            process.wait()
        how = f"exit status {ended}" if ended is not None else f"not ready after {_START_SECONDS:g} s"
        last = _tail(layout.daemon_log)
        msg = f"localcloud did not start in {layout.root} ({how}). Last lines of {layout.daemon_log}:\n{last}"
        raise ControlError(msg)


def stop(directory: Path) -> None:
    """Stop the daemon of a directory with everything that it started; the data stays. No daemon is no error."""
    layout = Paths(directory.resolve())
    if not layout.root.is_dir():
        return
    with _exclusive(layout):
        if found := _settled(layout):
            _end(found)


def status(directory: Path) -> Endpoint | None:
    """The running daemon of a directory, or None."""
    layout = Paths(directory.resolve())
    found = Endpoint.read(layout.root) if is_locked(layout.daemon_lock) else None
    return found if found and _is_there(found.pid) and is_running(found.pid) else None


def environment(endpoint: Endpoint) -> dict[str, str]:
    """Return the variables that point Google's tools, the provider and the program to this localcloud."""
    variables = {
        "GOOGLE_CLOUD_PROJECT": endpoint.project,
        "GOOGLE_PROJECT": endpoint.project,
        "GOOGLE_APPLICATION_CREDENTIALS": str(endpoint.credentials),
        "BEZEL_REGISTRY_ENDPOINT": endpoint.base,
        "HF_ENDPOINT": f"{endpoint.base}{HUB_PREFIX}",
        # Clients that wait for capacity measure in the platform's seconds, which pass faster.
        "BEZEL_SPEED": f"{endpoint.speed:g}",
    }
    variables |= {f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{endpoint.base}/{path}/" for api, path in _OVERRIDES.items()}
    return variables | ({"BEZEL_SIMULATED": "1"} if endpoint.server == "sim" else {})


def access_token(endpoint: Endpoint) -> str:
    """An access token of the deployer, from its key file.

    Raises:
        httpx.HTTPError: If the daemon does not return one.
    """
    # Imported late, here and below: most commands send no request themselves.
    import json

    import httpx

    from bezel.localcloud.access import keys

    content = json.loads(endpoint.credentials.read_text())
    now = int(time.time())
    claims = {
        "iss": content["client_email"],
        "aud": content["token_uri"],
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "iat": now,
        "exp": now + 3600,
    }
    assertion = keys.sign(claims, keys.load_private(content["private_key"]))
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
    answer = httpx.post(content["token_uri"], data=form, timeout=30, trust_env=False, verify=NO_TLS)
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def own_token(endpoint: Endpoint) -> str:
    """A token for localcloud's own routes (below /localcloud/), signed here: no fault of the token endpoint bars it."""
    import json

    from bezel.localcloud.access import keys

    content = json.loads(endpoint.credentials.read_text())
    now = int(time.time())
    claims = {"iss": content["client_email"], "aud": CONTROL_AUDIENCE, "iat": now, "exp": now + 300}
    return keys.sign(claims, keys.load_private(content["private_key"]))


def inventory(endpoint: Endpoint) -> Json:
    """Names of all resources that users created and that still exist, by kind; {} when nothing is left.

    Raises:
        httpx.HTTPError: If the daemon does not respond.
    """
    import httpx

    headers = {"Authorization": f"Bearer {own_token(endpoint)}"}
    answer = httpx.get(
        f"{endpoint.base}/localcloud/resources", headers=headers, timeout=30, trust_env=False, verify=NO_TLS
    )
    answer.raise_for_status()
    found: Json = answer.json()
    return found


def _settled(layout: Paths) -> Endpoint | None:
    """Return the running daemon; wait for one that is starting or stopping (its starter was killed, say)."""
    deadline = time.monotonic() + _STOP_SECONDS
    while is_locked(layout.daemon_lock):
        # The lock of a killed daemon may live on for a moment: with it, or in a child that it had just forked.
        if (found := Endpoint.read(layout.root)) and _is_there(found.pid) and is_running(found.pid):
            return found
        if time.monotonic() > deadline:
            msg = (
                f"a daemon holds {layout.daemon_lock} and {layout.endpoint} does not tell its process: end it yourself"
            )
            raise ControlError(msg)
        time.sleep(0.02)
    return None


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
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _exclusive(layout: Paths) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(layout.start_lock, _START_SECONDS + 2 * _STOP_SECONDS))
        except TimeoutError:
            msg = f"somebody else has been starting or stopping the localcloud in {layout.root} for too long"
            raise ControlError(msg) from None
        yield


def _environment() -> dict[str, str]:
    """Return the caller's variables that an interpreter and a real engine need.

    The daemon outlives its caller by days, and its environment is readable in /proc: no passphrase or token belongs
    there.
    """
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"
