"""Engine of a stack for one command: on the present backend, or on an empty one in a temporary folder.

The checkout stays as it is, whatever the command and its end: the engine gets a copy of the stack's file, into which it
may write its secrets provider. A stack that the backend does not have yet is previewed on a backend of its own, so that
an account that may only read can preview a first deploy. Leaves out the runs (`engine`).
"""

import contextlib
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.project.project import Project
from bezel.engine.run.command import QUICK_SECONDS, command_output, pulumi_cli
from bezel.engine.run.engine import Engine, exported_state
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.engine.state.exported import State, provider_lines, providers_of
from bezel.engine.state.secrets_key import PASSPHRASE, PASSPHRASE_FILE, check_key
from bezel.foundation.state_files import FOLDER, stack_of
from bezel_base.errors import NOT_SET, Problem, UserError

PROVIDER = "PULUMI_SECRETS_PROVIDER"
_PASSPHRASES = (PASSPHRASE, PASSPHRASE_FILE)
_NAMED = re.compile(r"^secretsprovider:\s*[\"']?([^\"'#\s]+)", re.MULTILINE)
_KEYS = re.compile(r"^(?:encryptedkey|encryptionsalt):", re.MULTILINE)


@dataclass(frozen=True)
class StackEngine:
    """A stack's engine and its state before the command.

    Attributes:
        engine: The engine, with a copy of the stack's file.
        state: The exported state, its secrets encrypted; None where the backend has no such stack.
    """

    engine: Engine
    state: State | None

    def present_state(self) -> State | None:
        """The state as it is now; None as before where the backend had no such stack."""
        return None if self.state is None else self.engine.export()


@contextlib.contextmanager
def stack_engine(
    project: Project, stack: str, environ: Mapping[str, str], *, create: bool = False, text: str | None = None
) -> Iterator[StackEngine]:
    """The engine of a stack while the block runs.

    Args:
        project: The project.
        stack: The stack's name; it has a file.
        environ: The engine's environment.
        create: Create the stack where the backend does not have it. Otherwise the engine gets an empty backend.
        text: Content that the engine takes for the stack's file; by default, that of the file.

    Raises:
        ProjectError: The stack has no file.
        ForeignKeyError: The file names a key of secrets that is not the stack's own.
        UserError: The backend cannot be read, or the stack cannot be created.
    """
    file = project.stack_file(stack)
    text = file.read_text(encoding="utf-8") if text is None else text
    state = _state(project, stack, environ)
    check_key(file.name, text, providers_of(state), environ)
    with _engine_with_copy(project, stack, environ, text, state) as engine:
        folder = engine.config_file.parent
        if state is not None:
            yield StackEngine(engine, state)
        elif create:
            _init(engine, folder, provider_of(text, environ))
            yield StackEngine(engine, engine.export())
        else:
            yield StackEngine(_elsewhere(engine, folder, text), None)


@contextlib.contextmanager
def deployed_engine(project: Project, stack: str, environ: Mapping[str, str]) -> Iterator[StackEngine | None]:
    """The engine of a stack that the backend has, while the block runs; None where the backend has no such stack.

    Args:
        project: The project.
        stack: The stack's name; it has a file.
        environ: The engine's environment.

    Raises:
        ProjectError: The stack has no file.
        ForeignKeyError: The file names a key of secrets that is not the stack's own.
        UserError: The backend cannot be read.
    """
    file = project.stack_file(stack)
    text = file.read_text(encoding="utf-8")
    state = _state(project, stack, environ)
    if state is None:
        yield None
        return
    check_key(file.name, text, providers_of(state), environ)
    with _engine_with_copy(project, stack, environ, text, state) as engine:
        yield StackEngine(engine, state)


def _state(project: Project, stack: str, environ: Mapping[str, str]) -> State | None:
    return exported_state(project, stack, environ) if _may_exist(project.name, stack, environ) else None


@contextlib.contextmanager
def _engine_with_copy(
    project: Project, stack: str, environ: Mapping[str, str], text: str, state: State | None
) -> Iterator[Engine]:
    """The engine with a copy of the stack's file, in a folder with the project's file."""
    with tempfile.TemporaryDirectory(prefix="bezel-stack-") as temporary:
        copy = Path(temporary) / f"Pulumi.{stack}.yaml"
        copy.with_name("Pulumi.yaml").write_bytes((project.folder / "Pulumi.yaml").read_bytes())
        copy.write_text(f"{text.rstrip()}\n{provider_lines(text, state)}", encoding="utf-8")
        copy.chmod(0o600)
        yield Engine(project, stack, dict(environ), copy)


def _may_exist(project: str, stack: str, environ: Mapping[str, str]) -> bool:
    """Whether the backend may have the stack. In a bucket that the engine has never used, its every command writes."""
    url = environ.get(BACKEND, "")
    if not url.startswith("gs://"):
        return True
    with StateBucket.of(url, environ) as bucket:
        path = f"{FOLDER}{project}/{stack}"
        return any(stack_of(entry.name) == path for entry in bucket.list(f"{path}.json"))


def provider_of(text: str, environ: Mapping[str, str]) -> str:
    """The secrets provider of a new stack.

    Raises:
        UserError: None is named, and there is no passphrase either.
    """
    named = _NAMED.search(text)
    provider = environ.get(PROVIDER) or (named.group(1) if named else "")
    if provider:
        return provider
    if any(name in environ for name in _PASSPHRASES):
        return "passphrase"
    consequence = "the stack is new, and nothing says what encrypts its secrets."
    repair = (
        f"set {PROVIDER} to gcpkms://projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY, or write it as "
        f"`secretsprovider` into the stack's file; on localcloud set {_PASSPHRASES[0]}."
    )
    raise UserError(Problem(PROVIDER, NOT_SET, consequence, repair))


def _init(engine: Engine, folder: Path, provider: str) -> None:
    """Create the stack; the engine writes its provider's key into the stack's file of the folder."""
    command = [pulumi_cli(), "stack", "init", engine.stack, "--non-interactive", "--secrets-provider", provider]
    command_output(command, folder=folder, seconds=QUICK_SECONDS, environment=engine.environment)


def _elsewhere(engine: Engine, folder: Path, text: str) -> Engine:
    """The engine on an empty backend in the folder; with a key of its own unless the stack's file holds secrets."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    environment = {**engine.environment, BACKEND: f"file://{state}"}
    named = _NAMED.search(text)
    provider = named.group(1) if named and _KEYS.search(text) else "passphrase"
    if not _KEYS.search(text):
        copy = folder / f"Pulumi.{engine.stack}.yaml"
        copy.write_text(_NAMED.sub("# \\g<0>", copy.read_text(encoding="utf-8")), encoding="utf-8")
        environment = {name: value for name, value in environment.items() if name not in _PASSPHRASES}
        environment[_PASSPHRASES[0]] = secrets.token_urlsafe(24)
    elsewhere = Engine(engine.project, engine.stack, environment, engine.config_file, engine.seconds)
    _init(elsewhere, folder, provider)
    return elsewhere
