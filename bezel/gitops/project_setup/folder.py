"""Folder of a project's set-up: the Pulumi project that runs `bootstrap`, its passphrase, and its state until it moves.

Owns the files and the lock of one run at a time on this machine. Leaves out the engine (`engine.py`).
"""

import fcntl
import importlib.util
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bezel.engine.outcomes import LockedError
from bezel.engine.run.record import LastRun
from bezel.engine.state.folder import remove_truncated, restore
from bezel.foundation.settings import NAMESPACE, plain
from bezel_base.atomic_write import write_whole
from bezel_base.console import note
from bezel_base.errors import Problem, UserError
from bezel_base.state_folder import state_folder

_WAIT_SECONDS = 90.0
"""A killed run's engine ends within that time (bezel.engine.run.process.GRACE_SECONDS)."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class SetupFolder:
    """The folder of one Google Cloud project.

    Attributes:
        path: The folder.
        project: Id of the Google Cloud project.
    """

    path: Path
    project: str

    @classmethod
    def of(cls, project: str) -> "SetupFolder":
        """The folder in the user's state folder."""
        return cls(state_folder("init") / plain(project), project)

    @property
    def stack(self) -> str:
        """Name of the stack: one for each Google Cloud project, so that states of several can be in one backend."""
        return plain(self.project)

    @property
    def state(self) -> Path:
        """Folder of the engine's file backend, until the state has moved."""
        return self.path / "state"

    @property
    def passphrase(self) -> Path:
        """File with the passphrase of the state's secrets, where no key of Cloud KMS encrypts them."""
        return self.path / "passphrase"

    @property
    def stack_file(self) -> Path:
        """The stack's file."""
        return self.path / f"Pulumi.{self.stack}.yaml"

    def has_state(self) -> bool:
        """Whether this machine has the state."""
        return (self.state / ".pulumi" / "stacks" / NAMESPACE / f"{self.stack}.json").exists()

    def drop_state(self) -> None:
        """Delete the state of this machine."""
        # Renamed first: half of a state must not be taken for one.
        gone = self.path / "state.gone"
        shutil.rmtree(gone, ignore_errors=True)
        if self.state.exists():
            self.state.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def is_being_destroyed(self) -> bool:
        """Whether a destroy was begun and has not ended."""
        return self._mark.exists()

    def note_destroy(self) -> None:
        """Record that a destroy begins: from here the state of this machine is the only true one."""
        write_whole(self._mark, "", mode=0o600)

    def forget(self) -> None:
        """Delete everything: the project has been destroyed."""
        self.drop_state()
        for file in (self.passphrase, self.stack_file, self.path / "Pulumi.yaml", self._mark):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.path / "runs", ignore_errors=True)

    def prepare(self, configuration: Mapping[str, object]) -> None:
        """Write the Pulumi project and the stack's file; what the engine wrote into that stays.

        Repairs what a killed engine has half written; under the folder's lock none lives.

        Raises:
            UserError: The state and the one before it are both truncated.
        """
        for folder in (self.path, self.state):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_truncated(self.state)
        restore(self.state, NAMESPACE, self.stack)
        if not self.passphrase.exists():
            write_whole(self.passphrase, secrets.token_urlsafe(24), mode=0o600)
        plugin = _package("bezel_components") / "dynamic_plugin"
        project = {
            "name": NAMESPACE,
            "main": str(program()),
            "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}},
            # As in the program's own Pulumi.yaml: the SDK's own plugin runs what any user of the machine sends it.
            "plugins": {"providers": [{"name": "pulumi-python", "path": str(plugin)}]},
        }
        write_whole(self.path / "Pulumi.yaml", yaml.safe_dump(project, sort_keys=False), mode=0o600)
        self.configure(configuration or self.configuration())

    def configure(self, configuration: Mapping[str, object], state: Mapping[str, object] | None = None) -> None:
        """Write the stack's file.

        Args:
            configuration: Its configuration.
            state: The deployment of a state that this machine may not know: its way of encrypting secrets is kept.
        """
        file = {**self._stack_file(), "config": dict(configuration), **_encryption(state or {})}
        write_whole(self.stack_file, yaml.safe_dump(file, sort_keys=False), mode=0o600)

    def configuration(self) -> dict[str, object]:
        """The configuration in the stack's file."""
        return dict(self._stack_file().get("config") or {})

    @contextmanager
    def hold_lock(self) -> Iterator[int]:
        """Hold the folder's lock; yield its descriptor, which the engine keeps open as long as it lives.

        Raises:
            LockedError: Another run holds it.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(self.path / "lock", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            end, announced = time.monotonic() + _WAIT_SECONDS, False
            while not _lock(file.fileno()):
                if time.monotonic() > end:
                    consequence = "another run on this machine sets this project up, or its engine still ends."
                    repair = "wait until it has ended, then run the same command again."
                    raise LockedError(Problem(str(self.path), None, consequence, repair))
                if not announced:
                    note(f"another run uses {self.path}: waiting for its end, at most {_WAIT_SECONDS:g} s")
                announced = True
                self._end_orphans()
                time.sleep(_LOOK_SECONDS)
            yield file.fileno()

    def last_run(self, place: str) -> LastRun:
        """The record of the last run of an engine with the state `here` or in the `bucket`."""
        return LastRun(self.path / "runs" / place)

    def _end_orphans(self) -> None:
        """End the plugins of a killed engine: they hold the lock too, and nothing else ends them."""
        for place in ("here", "bucket"):
            last = self.last_run(place)
            if last.is_orphan() and not last.is_running():
                last.end_leftovers()

    @property
    def _mark(self) -> Path:
        return self.path / "being-destroyed"

    def _stack_file(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = yaml.safe_load(self.stack_file.read_text(encoding="utf-8")) or {}
        except FileNotFoundError:
            return {}
        return content


def program() -> Path:
    """Folder of the program of the foundation, in a clone or in an environment.

    Raises:
        UserError: It is not installed.
    """
    return _package("bezel_bootstrap")


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        distribution = name.replace("_", "-")
        consequence = "the program that makes a project's foundation is not installed."
        repair = f"add it to pyproject.toml beside bezel, and run `make setup`; or `pip install {distribution}`."
        raise UserError(Problem(distribution, None, consequence, repair))
    return Path(spec.origin).parent


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _encryption(deployment: Mapping[str, object]) -> dict[str, object]:
    """The keys of a stack's file that say how its secrets are encrypted, as its state has them."""
    provider = deployment.get("secrets_providers")
    if not isinstance(provider, Mapping):
        return {}
    state = provider.get("state")
    state = json.loads(state) if isinstance(state, str) else state
    if not isinstance(state, Mapping):
        return {}
    if provider.get("type") == "cloud":
        return {"secretsprovider": state.get("url"), "encryptedkey": state.get("encryptedkey")}
    return {"encryptionsalt": state.get("salt")} if provider.get("type") == "passphrase" else {}
