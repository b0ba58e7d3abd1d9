"""Release of vLLM that a simulated server is: its name, whether it is recorded, and the one that answers a request.

Owns which releases can be served. Leaves the recorded tables to bezel_catalog, and what a release answers to the
modules that answer. Several servers of different releases may run in one process, so that the release of a request
is a variable of its context.
"""

from __future__ import annotations

import functools
import re
import tomllib
from contextvars import ContextVar
from pathlib import Path

from bezel_base.errors import Problem, UserError
from bezel_catalog.vllm.release_changes import order_of
from bezel_catalog.vllm.servers import recorded_servers

DEFAULT_RELEASE = "0.32.0"
VARIABLE = "LOCALCLOUD_RELEASE"
"""The release by the environment: localcloud sets it by the tag of a container's image."""
_OPTION = "--release"

answering_release: ContextVar[str] = ContextVar("answering_release", default=DEFAULT_RELEASE)
"""The release of the server that answers the present request."""


def check_release(name: str, given_by: str) -> str:
    """Return a release that can be served.

    Args:
        name: its name, e.g. "0.33.0", or the tag of its image, e.g. "v0.33.0".
        given_by: the option or variable with it.

    Raises:
        UserError: it is not recorded; no other one is served in its place.
    """
    release = name.removeprefix("v") if re.match(r"v\d", name) else name
    served = recorded_servers()
    if release in served:
        return release
    consequence = f"this release of vLLM is not recorded, and none is served as another; recorded: {', '.join(served)}."
    repair = (
        "choose one of them, or record it: `bezel catalog record-release PYTHON` with the interpreter of that vLLM."
    )
    raise UserError(Problem(given_by, name, consequence, repair))


def has_change(name: str) -> bool:
    """Whether the answering release has a change of `changes.toml`."""
    return is_since(_changes()[name]["since"])


def is_since(release: str) -> bool:
    """Whether the answering release is this one or a later one; a build that is named otherwise is the latest."""
    return is_at_least(answering_release.get(), release)


def is_at_least(name: str, release: str) -> bool:
    """Whether a release is the second one or a later one; a build that is named otherwise is the latest."""
    return order_of(name) >= order_of(release)


@functools.cache
def _changes() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("changes.toml").read_text(encoding="utf-8"))


def take_release(arguments: list[str], environment: dict[str, str]) -> tuple[str, list[str]]:
    """Return the release to serve, and the arguments without `--release`, which is none of vLLM's options.

    Args:
        arguments: the command line, with `--release NAME` or `--release=NAME` anywhere in it, or without.
        environment: the environment, with LOCALCLOUD_RELEASE or without.

    Raises:
        UserError: the release is not recorded, or `--release` has no value.
    """
    at = next((place for place, word in enumerate(arguments) if word.partition("=")[0] == _OPTION), None)
    if at is None:
        name = environment.get(VARIABLE)
        return (check_release(name, VARIABLE) if name else DEFAULT_RELEASE), arguments
    _, equals, value = arguments[at].partition("=")
    width = 1 if equals else 2
    name = value if equals else "".join(arguments[at + 1 : at + 2])
    return check_release(name, _OPTION), arguments[:at] + arguments[at + width :]
