"""Reader of `gcloud run deploy`: its flags become what the input says of a server.

Source: reference of `gcloud beta run deploy`, 2026-11. Every flag that is read is in one of the tables; any other one
is named. Leaves splitting to `gcloud_flags`. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bezel.conversion.inputs.found_server import FoundServer, Mount
from bezel.conversion.inputs.gcloud_flags import Flag, list_of, map_of, read_flags
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel.conversion.inputs.word_tables import reason_of, words_of
from bezel_base.errors import Problem, UserError
from bezel_catalog.option_values import as_int

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORM = "gcloud run deploy"
_TRACKS = ("alpha", "beta")
# Flag -> the field of the server that has its text.
_TEXTS = {
    "region": "region",
    "project": "project",
    "gpu-type": "gpu_type",
    "timeout": "timeout",
    "service-account": "account",
    "ingress": "ingress",
    "network": "network",
    "subnet": "subnetwork",
    "vpc-egress": "egress",
}
_SWITCHES = {
    "allow-unauthenticated": "public",
    "gpu-zonal-redundancy": "zonal_redundancy",
    "cpu-boost": "cpu_boost",
}
_NUMBERS = {"concurrency": "concurrency"}
# The service's own number goes before that of its revisions.
_SCALING = {"min": "min_instances", "max": "max_instances"}
_REVISION_SCALING = {"min-instances": "min_instances", "max-instances": "max_instances"}
_CONTAINER_TEXTS = {"image": "image", "cpu": "cpu", "memory": "memory", "port": "port"}
_MAPS = {
    "set-env-vars": "variables",
    "update-env-vars": "variables",
    "startup-probe": "probe",
    "liveness-probe": "liveness",
}
_OF_CONTAINERS = frozenset(
    (*_CONTAINER_TEXTS, "command", "args", "gpu", "set-env-vars", "update-env-vars", "set-secrets", "update-secrets")
) | {"add-volume-mount", "startup-probe", "liveness-probe", "readiness-probe", "depends-on", "env-vars-file"}


@dataclass(slots=True)
class _Container:
    name: str
    flags: list[Flag] = field(default_factory=list)

    def text(self, name: str) -> str:
        return next((flag.value or "" for flag in reversed(self.flags) if flag.name == name), "")

    @property
    def serves(self) -> bool:
        """Whether it is the one that requests are sent to, and that has the GPU."""
        return bool(self.text("gpu") or self.text("port")) or "vllm" in self.text("image")


def is_deploy(tokens: Sequence[str]) -> bool:
    """Whether a command is `gcloud [alpha|beta] run deploy`."""
    if not tokens or tokens[0].rpartition("/")[2] not in ("gcloud", "gcloud.cmd"):
        return False
    plain, _ = read_flags(tokens[1:])
    return (plain[1:] if plain[:1] and plain[0] in _TRACKS else plain)[:2] == ["run", "deploy"]


def read_deploy(tokens: Sequence[str]) -> FoundServer:
    """The server that a command deploys.

    Args:
        tokens: The command, `gcloud` first.

    Raises:
        UserError: It names no service or no image.
    """
    plain, flags = read_flags(tokens[1:])
    named = [word for word in plain if word not in _TRACKS][2:]
    server = FoundServer(form=FORM, on_cloud_run=True)
    if named and OPEN.search(named[0]):
        server.leave("SERVICE", named[0], "the input does not set this variable.", "name it: bezel:service_name.")
    elif named:
        server.name = named[0]
    containers = _containers(flags)
    of_revision = [flag for flag in flags if flag.name not in _OF_CONTAINERS and flag.name != "container"]
    for flag in of_revision:
        if flag.value is not None and OPEN.search(flag.value):
            repair = "write its value into the command, or into the stack file."
            server.leave(f"--{flag.name}", flag.value, "the input does not set this variable.", repair)
        else:
            _read_flag(server, flag)
    _read_scaling(server, of_revision)
    container = _serving(server, containers)
    _read_container(server, container, _volumes(server, of_revision))
    if not server.image:
        consequence = "it names no image, so what it deploys is not known."
        raise UserError(Problem("--image", None, consequence, "add --image=IMAGE to the command."))
    return server


def _containers(flags: list[Flag]) -> list[_Container]:
    containers = [_Container("")]
    for flag in flags:
        if flag.name == "container":
            containers.append(_Container(flag.value or ""))
        elif flag.name in _OF_CONTAINERS:
            containers[-1].flags.append(flag)
    return [each for each in containers if each.flags] or containers[:1]


def _serving(server: FoundServer, containers: list[_Container]) -> _Container:
    chosen = next((each for each in containers if each.serves), containers[0])
    for each in containers:
        if each is not chosen:
            reason = "a stack's service has one container."
            server.leave(f"--container={each.name}", each.text("image"), reason, "deploy it as a service of its own.")
    return chosen


def _read_flag(server: FoundServer, flag: Flag) -> None:
    name, value = flag.name, flag.value or ""
    if name in _TEXTS:
        setattr(server, _TEXTS[name], value)
    elif name in _NUMBERS:
        _set_number(server, f"--{name}", _NUMBERS[name], value)
    elif name in _SWITCHES:
        setattr(server, _SWITCHES[name], flag.is_on)
    elif name == "network-tags":
        server.tags = tuple(list_of(value))
    elif name in ("labels", "update-labels"):
        server.labels |= map_of(value)
    elif not _says_nothing(flag):
        server.leave(f"--{name}", "" if value in ("true", "false") else value, *reason_of("gcloud", name))
    if name == "invoker-iam-check" and not flag.is_on:
        server.public = True


def _says_nothing(flag: Flag) -> bool:
    """Whether a flag says nothing about the service, is read elsewhere, or says what holds of every stack."""
    if flag.name in ("add-volume", "scaling", "invoker-iam-check", *_SCALING, *_REVISION_SCALING):
        return True
    is_usual = (flag.name, flag.value) in (("execution-environment", "gen2"), ("cpu-throttling", "false"))
    return is_usual or flag.name in words_of("gcloud", "ignored")


def _read_scaling(server: FoundServer, flags: list[Flag]) -> None:
    for table in (_REVISION_SCALING, _SCALING):
        for flag in flags:
            if flag.name in table and not OPEN.search(flag.value or ""):
                if flag.value == "default":
                    continue
                _set_number(server, f"--{flag.name}", table[flag.name], flag.value or "")
    manual = next((flag.value or "" for flag in flags if flag.name == "scaling"), "auto")
    if manual != "auto":
        server.leave("--scaling", manual, "the number of a stack's instances follows its requests.", "")
        if (count := as_int(manual)) is not None:
            server.min_instances = server.max_instances = count


def _volumes(server: FoundServer, flags: list[Flag]) -> Mapping[str, Mount]:
    volumes = {}
    for flag in flags:
        if flag.name != "add-volume":
            continue
        values = map_of(flag.value or "")
        name = values.get("name", "")
        if values.get("type") != "cloud-storage":
            reason = f"a stack mounts its bucket of weights alone, no volume of type {values.get('type', '(not set)')}."
            server.leave("--add-volume", name, reason, "")
            continue
        options = tuple(values.get("mount-options", "").split(";")) if values.get("mount-options") else ()
        is_read_only = values.get("readonly", "false").lower() == "true"
        volumes[name] = Mount(values.get("bucket", ""), "", options, is_read_only)
    return volumes


def _read_container(server: FoundServer, container: _Container, volumes: Mapping[str, Mount]) -> None:
    tokens: dict[str, list[str]] = {"command": [], "args": []}
    mounts: list[Mount] = []
    for flag in container.flags:
        name, value = flag.name, flag.value or ""
        if name in _CONTAINER_TEXTS:
            setattr(server, _CONTAINER_TEXTS[name], value)
        elif name in tokens:
            tokens[name] += list_of(value)
        elif name in _MAPS:
            getattr(server, _MAPS[name]).update(map_of(value))
        elif name == "gpu":
            _set_number(server, "--gpu", "gpus", value)
        elif name.endswith("secrets"):
            _read_secrets(server, value)
        elif name == "add-volume-mount":
            mounts += _mounts_of(map_of(value), volumes)
        else:
            server.leave(f"--{name}", value, *reason_of("gcloud", name))
    server.tokens = (*tokens["command"], *tokens["args"])
    server.mounts = tuple(mounts)


def _mounts_of(values: Mapping[str, str], volumes: Mapping[str, Mount]) -> list[Mount]:
    mount = volumes.get(values.get("volume", ""))
    return [replace(mount, path=values.get("mount-path", ""))] if mount else []


def _read_secrets(server: FoundServer, text: str) -> None:
    for target, source in map_of(text).items():
        secret, _, version = source.partition(":")
        if target.startswith("/"):
            server.leave(f"--set-secrets {target}", secret, "a stack passes secrets as variables, not as files.", "")
        else:
            server.secrets[target] = (secret, version or "latest")


def _set_number(server: FoundServer, key: str, name: str, text: str) -> None:
    number = as_int(text)
    if number is None:
        if text not in ("", "default"):
            server.leave(key, text, "it is not a whole number.", "write a whole number.")
        return
    setattr(server, name, number)
