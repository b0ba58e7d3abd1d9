"""Context of an operation: the project's folder, the environment, the clock, and a client for Google's APIs.

Owns what every operation needs to find a deployment. Leaves out what an operation does with it, and any state between
two operations: a server that lives for hours makes a context for each call.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

from bezel.leases.clock import PlatformClock, clock_of
from bezel_base.console import note
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.text.shell import shell_word, shell_word_for_make

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bezel.engine.project.project import Project
    from bezel.operations.deployment.deployment import Deployment
    from bezel.rest import Credentials, GoogleClient

_SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class NotDeployedError(UserError):
    """The backend has no such stack, or the stack has no such part."""


@dataclass(frozen=True)
class Context:
    """What an operation works with. A context manager that closes its client.

    Attributes:
        folder: Folder of the Pulumi project.
        environ: The environment: backend of the states, credentials, addresses of the APIs.
        clock: The time.
        show: Called with each line of progress.
        output: Called with each line of a result that grows while it is awaited; None: such lines are progress.
        pieces: Called with each piece of a text that grows, as it arrives, newlines included; None: it is not shown.
        shows_secrets: Whether what the face shows may hold a secret that is made, once; otherwise a file of the user's
            own gets it.
        cancelled: Set by the face when the caller gives the operation up.
        scope: The only stacks that the caller may see; empty for all. Every other one is as if it did not exist.
    """

    folder: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _: KW_ONLY
    clock: PlatformClock = field(default_factory=clock_of)
    show: Callable[[str], None] = note
    output: Callable[[str], None] | None = None
    pieces: Callable[[str], None] | None = None
    shows_secrets: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    scope: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "google" in vars(self):
            self.google.close()

    @cached_property
    def project(self) -> Project:
        """The Pulumi project."""
        from bezel.engine.project.project import Project  # half a second, which not every operation needs

        return Project(self.folder, self.scope)

    @cached_property
    def credentials(self) -> Credentials:
        """The identity of the caller."""
        from bezel.rest import Credentials  # late, as below: `plan` and `cost` ask no server

        return Credentials(environ=self.environ)

    @cached_property
    def google(self) -> GoogleClient:
        """A client for Google's APIs, with a deadline of 30 s a request."""
        from bezel.rest import GoogleClient

        return GoogleClient(self.credentials, deadline_seconds=_SECONDS)

    def address(self, api: str) -> str:
        """Base address of an API, as of `bezel.rest.endpoint`."""
        from bezel.rest import endpoint

        return endpoint(api, self.environ)

    def cloud_project(self, stack: str | None) -> str:
        """The Google Cloud project of a stack's file; without a stack that of the environment.

        Raises:
            UserError: None is named, or there is no such stack.
        """
        from bezel.engine.project.project import ProjectError, cloud_project_of

        stack_project = None if stack is None else self.project.cloud_project(stack, self.environ)
        named = stack_project or cloud_project_of(self.environ)
        if named is None:
            consequence = "no Google Cloud project is named."
            repair = "set GOOGLE_CLOUD_PROJECT, or `gcp:project` in the file of the stack that is named."
            raise ProjectError(Problem("GOOGLE_CLOUD_PROJECT", NOT_SET, consequence, repair))
        return named

    def stacks(self) -> list[str]:
        """Names of the project's stacks in the backend that the caller may see, sorted.

        Raises:
            UserError: The backend cannot be read.
        """
        from bezel.operations.deployment.state_reader import stacks_in

        names = stacks_in(self.folder, self.project.name, self.environ)
        return [stack for stack in names if not self.scope or stack in self.scope]

    def deployment(self, stack: str) -> Deployment:
        """The deployment of a stack, as the backend records it.

        Raises:
            NotDeployedError: The backend has no such stack.
            UserError: The backend cannot be read, or no stack can have this name.
        """
        if not _NAME.fullmatch(stack) or not stack.strip("."):
            # It becomes part of a path, and may come from an agent.
            consequence = "a stack's name has letters, digits, hyphens, underscores and periods, 100 at most."
            raise NotDeployedError(Problem("STACK", stack, consequence, "`pulumi stack ls` shows the names."))
        from bezel.operations.deployment.deployment import deployment_of
        from bezel.operations.deployment.state_reader import read_state

        is_hidden = bool(self.scope) and stack not in self.scope
        state = None if is_hidden else read_state(self.folder, self.project.name, stack, self.environ)
        if state is None:
            stacks = self.stacks()
            from bezel_catalog import closest  # a list of tools needs no catalogue

            near = closest(stack, stacks)
            hint = f"did you mean {near}? " if near else ""
            repair = f"write Pulumi.{stack}.yaml"
            if stack in self.project.stacks():
                on_localcloud = f"`make up STACK={shell_word_for_make(stack)}`"
                repair = f"deploy it: `bezel deploy {shell_word(stack)}`, on localcloud {on_localcloud}"
            choice = f"choose one of {', '.join(stacks)}, or " if stacks else ""
            repair = f"{hint}{choice}{repair}."
            raise NotDeployedError(Problem("STACK", stack, "the backend has no state of it.", repair))
        return deployment_of(stack, state)
