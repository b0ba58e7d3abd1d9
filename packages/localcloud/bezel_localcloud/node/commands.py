"""Command lines of a machine: `docker` and its installers, parsed and answered as far as a startup script uses them.

Owns the words. Leaves out images and containers (docker.py).
"""

import argparse
import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.node.docker import DockerDaemon, RefusedError, RunOptions

_VERSION = "Docker version 27.5.1, build 9f9e405"


@dataclass(frozen=True)
class CommandResult:
    """Output and exit status of a command."""

    code: int = 0
    out: str = ""
    err: str = ""


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(f"docker: localcloud's stand-in does not support this command line: {message}", 125)


async def answer(engine: DockerDaemon, program: str, argv: Sequence[str], stdin: str, config: Path) -> CommandResult:
    """Execute a command line.

    Args:
        engine: The machine's containers.
        program: docker, apt-get, wget, or what comes with docker: nvidia-ctk and systemctl.
        argv: The arguments after the program's name.
        stdin: Its standard input.
        config: DOCKER_CONFIG.
    """
    try:
        if program in {"apt-get", "wget"}:
            return _download(engine, program, argv)
        if not engine.installed:
            return CommandResult(127, err=f"{program}: command not found")
        if program != "docker":
            return CommandResult()
        return await _docker(engine, argv, stdin, _on_disk(engine, config))
    except RefusedError as refusal:
        return CommandResult(refusal.code, err=str(refusal))


def _download(engine: DockerDaemon, program: str, argv: Sequence[str]) -> CommandResult:
    """Answer a download: packages, docker among them, and anything else as a line of text."""
    if not engine.ways.internet():
        return CommandResult(100, err="E: Failed to fetch: Could not connect, connection timed out")
    engine.installed = engine.installed or "docker.io" in argv
    return CommandResult(out="made up" if program == "wget" else "")


async def _docker(engine: DockerDaemon, argv: Sequence[str], stdin: str, config: Path) -> CommandResult:
    match list(argv):
        case ["--version"]:
            return CommandResult(out=_VERSION)
        case ["info"]:
            return CommandResult(out="Server:\n Server Version: 27.5.1")
        case ["image", "inspect", image]:
            if image not in engine.images:
                raise RefusedError(f"Error response from daemon: No such image: {image}")
            return CommandResult(out=json.dumps([{"RepoDigests": [image]}]))
        case ["login", "--username", user, "--password-stdin", registry]:
            return _login(engine, registry.removeprefix("https://"), user, stdin.strip(), config)
        case ["pull", "--quiet", image]:
            engine.pull(image, _token(config, image.partition("/")[0]))
            return CommandResult(out=image)
        case ["run", *words]:
            return CommandResult(out=await engine.run(*_run_words(engine, words)))
    return await _container(engine, argv)


async def _container(engine: DockerDaemon, argv: Sequence[str]) -> CommandResult:
    match list(argv):
        case ["rm", "--force", name]:
            await engine.remove(name)
            return CommandResult(out=name)
        case ["stop" | "start" | "restart" as verb, name]:
            await engine.change(name, verb)
            return CommandResult(out=name)
        case ["inspect", "--format", "{{.State.Status}} {{.RestartCount}} {{.State.ExitCode}}", name]:
            container = engine.container(name)
            return CommandResult(out=f"{container.status} {container.restarts} {container.code}")
        case ["logs", "--tail", lines, name] if (number := decimal(lines)) is not None:
            log = list(engine.container(name).log)
            return CommandResult(out="\n".join(log[max(0, len(log) - number) :]))
    raise RefusedError(f"docker: localcloud's stand-in does not support this command line: {' '.join(argv)}", 125)


def _on_disk(engine: DockerDaemon, path: Path) -> Path:
    """Translate a path of the machine into one of this computer.

    Raises:
        RefusedError: It leads, directly or by a link, out of the folder that is the machine's file system.
    """
    resolved = path.resolve()
    if not resolved.is_relative_to(engine.disk):
        raise RefusedError(f"docker: {path} is not on this machine's disk, {engine.disk}", 125)
    return resolved


def _login(engine: DockerDaemon, registry: str, user: str, token: str, config: Path) -> CommandResult:
    engine.check_login(registry, token)
    config.mkdir(parents=True, exist_ok=True)
    pair = base64.b64encode(f"{user}:{token}".encode()).decode()
    (config / "config.json").write_text(json.dumps({"auths": {registry: {"auth": pair}}}))
    warning = f"WARNING! Your password will be stored unencrypted in {config / 'config.json'}."
    return CommandResult(out="Login Succeeded", err=warning)


def _token(config: Path, registry: str) -> str:
    try:
        pair = json.loads((config / "config.json").read_text(encoding="utf-8"))["auths"][registry]["auth"]
        return base64.b64decode(pair).decode().partition(":")[2]
    except (OSError, ValueError, LookupError, binascii.Error):
        return ""


def _run_words(engine: DockerDaemon, arguments: Sequence[str]) -> tuple[RunOptions, str, tuple[str, ...]]:
    """(options, image, command) of `docker run`."""
    parser = _ArgumentParser(prog="docker run", add_help=False, allow_abbrev=False)
    for flag in ("--detach", "--privileged"):
        parser.add_argument(flag, action="store_true", required=flag == "--detach")
    single = ("--name", "--restart", "--net", "--shm-size", "--gpus", "--ipc", "--entrypoint", "--memory", "--cpus")
    for option in single:
        parser.add_argument(option, default="")
    for option in ("--volume", "--env-file", "--log-opt", "--tmpfs"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    parsed = parser.parse_args(arguments)
    policy, _, max_restarts = parsed.restart.partition(":")
    most = decimal(max_restarts or "1000000", 10**6)
    if policy not in {"", "no", "on-failure", "unless-stopped"} or most is None:
        raise RefusedError(f"docker: localcloud's stand-in does not support the restart policy {parsed.restart!r}", 125)
    options = RunOptions(
        name=parsed.name,
        restarts=most if policy in {"on-failure", "unless-stopped"} else 0,
        host_network=parsed.net == "host",
        privileged=parsed.privileged,
        gpus=parsed.gpus == "all",
        entrypoint=parsed.entrypoint,
        environment={name: value for path in parsed.env_file for name, value in _variables(engine, path).items()},
        volumes={
            inside: str(_on_disk(engine, Path(outside)))
            for outside, inside in (text.split(":")[:2] for text in parsed.volume)
        },
    )
    return options, parsed.image, tuple(parsed.command)


def _variables(engine: DockerDaemon, path: str) -> dict[str, str]:
    try:
        lines = _on_disk(engine, Path(path)).read_text(encoding="utf-8").splitlines()
    except OSError:
        raise RefusedError(f"docker: open {path}: no such file or directory", 125) from None
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
