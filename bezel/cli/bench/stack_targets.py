"""Targets of `bezel bench`: servers of a project's stacks too, and the authorisation by Google's identity tokens.

What finds a stack's server and proves an identity is imported where it is used: a load on an address begins sooner.
Leaves out what a stack's plan says of its server (`bezel.cli.bench.stack_record`).
"""

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bezel_base.console import note
from bezel_base.errors import Problem, UserError, one_line
from bezel_bench.commands.targets import Deployment, Record
from bezel_bench.load.plan import PATHS, Endpoint, Target, TokenSource

if TYPE_CHECKING:
    from bezel.engine.project.project import Project
    from bezel.rest.connect_to import ConnectTo
    from bezel_bench.result.document import Cell
    from bezel_bench.result.platform_series import PlatformSeries

# Credentials return no token that expires within 300 s; a request a minute later leaves them time to renew it.
_TOKEN_SECONDS = 360.0
_OUTPUT_SECONDS = 120.0


class StackTargets:
    """Servers that are named by an address, or by a stack of a project.

    Args:
        project: The project of the stacks.
    """

    program = "bezel"
    typed = ".venv/bin/bezel"

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._read: dict[str, dict[str, Any]] = {}

    def endpoint(self, options: argparse.Namespace) -> Endpoint:
        """Return the endpoint that the deployed plan of the stack names for its model, else that of chats.

        Raises:
            UserError: The stack is not deployed, or only a plugin of its server can ask the model.
        """
        if not options.stack:
            return "chat"
        plan = self._outputs_of(options.stack).get("plan")
        pooled_at = plan.get("pooled_at") if isinstance(plan, dict) else None
        if pooled_at is None:
            return "chat"
        for name, path in PATHS.items():
            if path == pooled_at:
                return cast("Endpoint", name)
        consequence = "only a plugin of its server can ask its model, and this client has no such requests."
        repair = "choose another task of the model: vllm: {pooler-config: {task: embed}}."
        raise UserError(Problem("--stack", options.stack, consequence, repair))

    def _outputs_of(self, stack: str) -> dict[str, Any]:
        """The outputs of a stack, read once."""
        if stack not in self._read:
            self._read[stack] = _outputs(self._project, stack)
        return self._read[stack]

    def find(self, options: argparse.Namespace) -> Deployment:
        """Return what the outputs and the settings of the stack say of its server; nothing without a stack.

        Raises:
            UserError: The stack is not deployed, or its outputs cannot be read.
        """
        if not options.stack:
            return Deployment()
        outputs = self._outputs_of(options.stack)
        url = str(outputs.get("url") or "")
        if not url:
            raise UserError(Problem("--stack", options.stack, "the stack has no output `url`.", "deploy it first."))
        url, place = self._reachable_url(options.stack, url, outputs)
        settings = self._project.configuration(options.stack)
        return Deployment(
            url,
            str(outputs.get("model") or ""),
            public=bool(_section(settings, "access").get("public")),
            simulated=bool(outputs.get("simulated")),
            impersonate=_section(settings, "smoke").get("impersonate"),
            outputs={**outputs, "url": url},
            ca_file=place.authority if place else "",
            at=f"{place.host}:{place.port}" if place else "",
        )

    def _reachable_url(self, stack: str, url: str, outputs: Mapping[str, Any]) -> "tuple[str, ConnectTo | None]":
        """The address that answers, and where to connect: the first region's where the stack's own does not."""
        from bezel.operations.deployment.address import address_of  # late: most stacks have none

        if address_of(outputs.get("address")) is None:
            return url, None
        from bezel.operations.address.access import reachable_access
        from bezel.operations.context import Context

        with Context(self._project.folder, os.environ) as context:
            access = reachable_access(context, context.deployment(stack))
        if access.note:
            note(access.note)
        return access.url, access.connect_to

    def identity(self, target: Target, impersonate: str | None) -> TokenSource:
        """Return the headers of `headers_of`.

        Raises:
            UserError: No token can be obtained.
        """
        return headers_of(target, impersonate)

    def record(self, options: argparse.Namespace, outputs: Mapping[str, Any]) -> Record:
        """Return what the stack's plan and outputs say of its server; nothing without a stack.

        Raises:
            UserError: The stack cannot be planned.
        """
        if not options.stack:
            return Record()
        from bezel.cli.bench.stack_record import record_of  # late: commands that only read files need no plan

        return record_of(self._project, options.stack, outputs)

    def platform_series(
        self,
        options: argparse.Namespace,
        outputs: Mapping[str, Any],
        cells: "Sequence[Cell]",
        show: Callable[[str], None],
    ) -> "Mapping[str, Sequence[PlatformSeries]]":
        """Return what Cloud Monitoring has of the stack's service; nothing without a stack, or for leased machines."""
        if not options.stack:
            return {}
        from bezel.operations.bench.platform_series import platform_series
        from bezel.operations.context import Context

        with Context(self._project.folder, os.environ) as context:
            try:
                deployment = context.deployment(options.stack)
            except UserError as error:
                # The load was measured: what the platform knows of it is less than its result.
                note(f"Cloud Monitoring was not asked about the load: {one_line(error)}")
                return {}
            return platform_series(context, deployment, str(outputs.get("url") or ""), cells, show)


def headers_of(target: Target, impersonate: str | None = None) -> TokenSource:
    """The headers that authorise requests to a server: none, or an identity token that is renewed.

    Raises:
        UserError: No token can be obtained.
    """
    if target.public:
        return dict
    from bezel.rest import Credentials, RestError, url_for_token
    from bezel_bench.client.auth_headers import Fetched, RenewedHeaders

    audience = target.audience.rstrip("/") or target.url

    def fetch() -> Fetched:
        return Fetched({"Authorization": f"Bearer {credentials.identity_token(audience)}"}, _TOKEN_SECONDS)

    try:
        url_for_token(target.url, "the server's address")
        credentials = Credentials(impersonate)
        return RenewedHeaders(fetch)
    except RestError as error:
        title = "No identity token for the server (add --public if it needs none)"
        raise UserError(*error.problems, title=title) from None


def _outputs(project: "Project", stack: str) -> dict[str, Any]:
    """A stack's outputs, from the state that the engine uses in this environment."""
    from bezel.engine.run.command import CommandError, command_output, pulumi_cli
    from bezel_base.text.shell import shell_word_for_make

    project.stack_file(stack)
    command = [pulumi_cli(), "stack", "output", "--json", "--stack", stack]
    try:
        return dict(json.loads(command_output(command, folder=project.folder, seconds=_OUTPUT_SECONDS)))
    except CommandError as error:
        repair = (
            f"deploy it first; on localcloud: `make up STACK={shell_word_for_make(stack)}`, and `eval "
            '"$(.venv/bin/bezel local env)"` in '
            "this shell."
        )
        raise UserError(Problem("--stack", stack, f"its outputs cannot be read: {error}", repair)) from None


def _section(settings: Mapping[str, object], name: str) -> Mapping[str, Any]:
    section = settings.get(name)
    return section if isinstance(section, dict) else {}
