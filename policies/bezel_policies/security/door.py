"""Judgement of a door of keys: a Cloud Run service that is open to everyone and refuses callers without a key itself.

What runs is said by its inputs alone: Python's image, the command with the digest of the shipped archive, its three
variables and the one volume with the archive. A service that has more, less or other than that is no door. Leaves to
`no_open_address` whether the image's repository has Docker Hub's images: that takes the whole program. Pure.
"""

import re
from collections.abc import Mapping
from functools import cache

from bezel.resource_cost.hardware import SERVICE
from bezel.resource_cost.inputs import Inputs, camel
from bezel_door.archive import door_archive
from bezel_door.launch import COMMANDS, FOLDER, VARIABLES, arguments_of

_IMAGE = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^@]+)/(?P<repository>[^/@]+)/library/python"
    r"@sha256:[0-9a-f]{64}"
)
_OF_CONTAINER = frozenset(
    {"args", "commands", "envs", "image", "livenessProbe", "name", "ports", "resources", "startupProbe", "volumeMounts"}
)
_OF_VARIABLE, _OF_MOUNT, _OF_VOLUME = (
    frozenset({"name", "value"}),
    frozenset({"name", "mountPath"}),
    frozenset({"name", "secret"}),
)


def is_meant_as_door(token: str, inputs: Inputs) -> bool:
    """Whether a resource has a door's variables, whatever it runs."""
    if token != SERVICE:
        return False
    containers = inputs.each("template", "containers")
    return any(each.text("name") in VARIABLES for container in containers for each in container.each("envs"))


def door_flaw(inputs: Inputs) -> str:
    """What a service has that the shipped door has not, as `KEY is another one`; "" where it is that door.

    Raises:
        InputError: An input that says what runs is not known yet.
    """
    containers, volumes = inputs.each("template", "containers"), inputs.each("template", "volumes")
    if len(containers) != 1:
        return f"{inputs.key('template', 'containers')} has {len(containers)} of them and not one"
    if len(volumes) != 1:
        return f"{inputs.key('template', 'volumes')} has {len(volumes)} of them and not the archive's alone"
    container, volume = containers[0], volumes[0]
    variables, mounts = container.each("envs"), container.each("volumeMounts")
    # In the order in which a reader finds the cause: an older archive is the frequent one.
    checks = {
        container.key("image"): _IMAGE.fullmatch(container.text("image") or "") is not None,
        container.key("commands"): _texts(container, "commands") == COMMANDS,
        container.key("args"): _texts(container, "args") == _arguments(),
        container.key("envs"): {each.text("name") for each in variables} == VARIABLES
        and all(_has_only(each, _OF_VARIABLE) for each in variables),
        container.key("volumeMounts"): [each.text("mountPath") for each in mounts] == [FOLDER]
        and all(_has_only(each, _OF_MOUNT) for each in mounts),
        volume.key(): _has_only(volume, _OF_VOLUME),
        container.key(): _has_only(container, _OF_CONTAINER),
    }
    return next((f"{key} is not that of the shipped door" for key, holds in checks.items() if not holds), "")


def image_repository(inputs: Inputs) -> tuple[str, str, str] | None:
    """Project, location and id of the repository of a door's image; None for another image."""
    (container, *_) = inputs.each("template", "containers")
    match = _IMAGE.fullmatch(container.text("image") or "")
    return None if match is None else (match["project"].replace("/", ":"), match["location"], match["repository"])


def _texts(container: Inputs, name: str) -> tuple[str, ...]:
    return tuple(str(each.get()) for each in container.each(name))


@cache
def _arguments() -> tuple[str, ...]:
    return arguments_of(door_archive())


def _has_only(inputs: Inputs, names: frozenset[str]) -> bool:
    """Whether nothing else is set; an empty value is that of an input that is not set."""
    values = inputs.values if isinstance(inputs.values, Mapping) else {}
    return {camel(str(name)) for name, value in values.items() if value not in (None, "", [], {}, False)} <= names
