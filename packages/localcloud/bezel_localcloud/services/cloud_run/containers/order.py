"""Containers of an instance: which one takes requests, the order of their starts, and the rules for several. Pure.

Sources: Cloud Run's page on sidecars (10 containers, one of them with a port; a container starts once those that it
depends on have passed their startup probes) and the API's own messages, as users report them (issue 302 of
terraform-google-cloud-run, issue 230 of cloud-run-samples). How the API words a cycle or an unknown name is not known.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bezel_localcloud.core.json_types import Json

_MOST = 10
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CONTAINERS = "service.template.containers"


def serving_container(template: Json) -> Json:
    """The container that takes requests: the one with a port, else the first."""
    containers: list[Json] = template.get("containers") or [{}]
    return next((container for container in containers if container.get("ports")), containers[0])


def order_violations(containers: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """(field, text) of every violation of the rules for several containers."""
    if len(containers) > _MOST:
        yield _CONTAINERS, f"{len(containers)} containers are more than {_MOST}"
    if len(containers) > 1 and sum(bool(container.get("ports")) for container in containers) != 1:
        yield _CONTAINERS, "Revision template should contain exactly one container with an exposed port."
    names = [container.get("name", "") for container in containers]
    for index, name in enumerate(names):
        if name and not _NAME.fullmatch(name):
            yield f"{_CONTAINERS}[{index}].name", f"'{name}': lower case letters, digits and hyphens, at most 63"
    for name in sorted(name for name, times in Counter(names).items() if name and times > 1):
        yield _CONTAINERS, f"the name '{name}' is given more than once"
    yield from _dependency_violations(containers)


def _dependency_violations(containers: Sequence[Json]) -> Iterator[tuple[str, str]]:
    by_name = {container["name"]: container for container in containers if container.get("name")}
    for index, container in enumerate(containers):
        field = f"{_CONTAINERS}[{index}].depends_on"
        for name in container.get("dependsOn") or []:
            if name not in by_name:
                yield field, f"no container is named '{name}'"
            elif not by_name[name].get("startupProbe"):
                yield field, f"Dependent container '{name}' must have startup probe specified"
    dependencies = {name: container.get("dependsOn") or [] for name, container in by_name.items()}
    cyclic = [name for name in dependencies if name in _reachable(name, dependencies)]
    if cyclic:
        yield _CONTAINERS, f"depends_on is a cycle: {', '.join(sorted(cyclic))}"


def start_order(dependencies: Mapping[str, Iterable[str]]) -> list[str]:
    """Names in an order in which each follows all that it depends on; otherwise as they are given.

    Args:
        dependencies: Name -> the names that it depends on, without a cycle.
    """
    ordered: list[str] = []

    def add(name: str) -> None:
        if name not in ordered:
            for other in dependencies[name]:
                add(other)
            ordered.append(name)

    for name in dependencies:
        add(name)
    return ordered


def _reachable(name: str, dependencies: Mapping[str, Iterable[str]]) -> set[str]:
    """All names that a name depends on, also by others."""
    reached, open_names = set[str](), [*dependencies[name]]
    while open_names:
        if (other := open_names.pop()) not in reached:
            reached.add(other)
            open_names += dependencies.get(other, ())
    return reached
