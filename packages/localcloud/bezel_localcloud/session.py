"""A localcloud for a session of tests: its settings, its start and end, and what tests do with it.

The fixture `localcloud` of `bezel_localcloud.pytest_plugin` is one; any other runner of tests may use `serve_session`.
"""

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bezel_base.errors import Problem, UserError
from bezel_localcloud import clients, control, control_client, seed
from bezel_localcloud.command.cloud import LocalCloud
from bezel_localcloud.command.program import Program
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.project_id import project_for

if TYPE_CHECKING:
    import pytest


class _IniOptions(Program):
    """The ini options in place of a command's."""

    def key(self, option: str) -> str:
        """The ini option for an option of the command."""
        return f"localcloud_{option.removeprefix('--')}"

    def option(self, name: str, value: str) -> str:
        """The line of an ini file."""
        return f"`{self.key(name)} = {value}`"


@dataclass(frozen=True)
class Settings:
    """What a session's localcloud has.

    Attributes:
        apis: Full names of the APIs that its project has enabled beside those of a new project.
        buckets: Folder whose folders become buckets with their files; None for none.
        speed: Factor by which waits of the platform are shortened.
        server: Server behind each service.
        model: Folder of the model that a real server serves.
        project: Id of its project; "" for the usual one.
    """

    apis: tuple[str, ...] = ()
    buckets: Path | None = None
    speed: float = 1000.0
    server: Literal["sim", "vllm"] = "sim"
    model: Path | None = None
    project: str = ""

    @classmethod
    def read(
        cls,
        *,
        enable: Sequence[str],
        seed: Sequence[Path],
        speed: str,
        server: str,
        model: Sequence[Path],
        project: str,
    ) -> "Settings":
        """The settings that ini options give.

        Raises:
            UserError: Some are wrong; the text names all of them.
        """
        problems: list[Problem | str] = []
        apis: list[str] = []
        try:
            apis = clients.full_api_names(enable, "localcloud_enable")
        except UserError as error:
            problems += error.problems
        try:
            project_for(None, project, "localcloud_project")
        except UserError as error:
            problems += error.problems
        factor = _positive(speed)
        if factor is None:
            consequence = "expected a finite number above 0: no wait could be shortened by it."
            problems.append(Problem("localcloud_speed", speed, consequence, "write e.g. localcloud_speed = 1000."))
        folders = {"localcloud_seed": [*seed], "localcloud_model": [*model]}
        for name, paths in folders.items():
            if len(paths) > 1:
                named = " ".join(map(str, paths))
                problems.append(Problem(name, named, "expected one folder.", "name one; write a blank in it as '\\ '."))
            elif paths and not paths[0].is_dir():
                repair = "name a folder, relative to the file of this option."
                problems.append(Problem(name, str(paths[0]), "there is no such folder.", repair))
        if server not in {"sim", "vllm"}:
            problems.append(Problem("localcloud_server", server, "expected sim or vllm.", "choose one of them."))
        if factor is None or server not in {"sim", "vllm"} or problems:
            raise UserError(*problems, title="localcloud cannot be started for the tests")
        kind: Literal["sim", "vllm"] = "vllm" if server == "vllm" else "sim"
        folder = model[0] if model else None
        LocalCloud(_IniOptions(), Path(), kind, folder).check_server()
        return cls(tuple(apis), seed[0] if seed else None, factor, kind, folder, project)


class SessionFaults:
    """The faults of a session's localcloud, as `localcloud fault list` explains them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def add(self, kind: str, **parameters: str | float) -> Mapping[str, Any]:
        """Add a fault, in place of one of the same kind; return it, or what one that acts at once `struck`.

        Raises:
            UserError: There is no such kind, or a parameter is wrong.
        """
        return control_client.add_fault(self._endpoint, kind, parameters)

    def clear(self, kind: str = "") -> list[str]:
        """Clear the fault of one kind, or all; return the kinds that were active.

        Raises:
            UserError: No fault of that kind is active.
        """
        return control_client.clear_faults(self._endpoint, kind)

    def active(self) -> list[dict[str, Any]]:
        """The active faults: `kind`, `parameters`, and `met`, how often each matched, where that counts."""
        return control_client.active_faults(self._endpoint)


class Localcloud:
    """A running localcloud, as tests see it.

    Attributes:
        address: Address of all APIs, `http://127.0.0.1:PORT`.
        project: Id of its project.
        credentials: Key file of an owner of the project, as GOOGLE_APPLICATION_CREDENTIALS names it.
        endpoints: The address of each API by its name, as a client library takes it in `api_endpoint`.
        environment: The variables that point Google's clients to it, as `localcloud env` prints them.
        directory: Folder of its data; `logs` in it says what happened.
        faults: Adds and clears faults.
    """

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self._endpoint, self._settings = endpoint, settings
        self.address = endpoint.base
        self.project = endpoint.project
        self.credentials = endpoint.credentials
        self.endpoints: Mapping[str, str] = clients.api_endpoints(endpoint)
        self.environment: Mapping[str, str] = clients.environment(endpoint)
        self.directory = endpoint.directory
        self.faults = SessionFaults(endpoint)

    def token(self) -> str:
        """An access token of the owner, valid for an hour.

        Raises:
            httpx.HTTPError: localcloud gives none, as under a fault.
        """
        return control.access_token(self._endpoint)

    def set_variables(self, monkeypatch: "pytest.MonkeyPatch") -> None:
        """Set the variables for a test, and remove those that clients would prefer to them."""
        for name in clients.FOREIGN:
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def reset(self) -> None:
        """Begin a new project: resources, contents, permissions, logs and faults are gone; what ran has ended.

        Address, key file and tokens stay valid, so clients need not be made again. APIs are enabled and buckets filled
        as at the start. Requests that run meanwhile, as of another thread, are cut off.

        Raises:
            UserError: localcloud does not respond.
        """
        control_client.reset(self._endpoint)
        self.prepare()

    def prepare(self) -> None:
        """Enable the APIs and fill the buckets of the settings.

        Raises:
            UserError: localcloud refuses it, as a bucket's name.
        """
        for api in self._settings.apis:
            seed.enable(self._endpoint, api)
        if self._settings.buckets is not None:
            seed.copy_folder(self._endpoint, self._settings.buckets)


@contextlib.contextmanager
def serve_session(directory: Path, settings: Settings) -> Iterator[Localcloud]:
    """Start a localcloud in a new folder and stop it at the end; it also ends with this process.

    Raises:
        UserError: It does not start, or has no use for the settings.
    """
    cloud = LocalCloud(_IniOptions(), directory, settings.server, settings.model, settings.speed)
    cloud.check_server()
    endpoint = control.start(
        directory, server=settings.server, speed=settings.speed, parent=os.getpid(), project=settings.project
    )
    try:
        served = Localcloud(endpoint, settings)
        served.prepare()
        yield served
    finally:
        control.stop(directory)


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None
