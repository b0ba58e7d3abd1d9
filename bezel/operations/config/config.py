"""Configuration of a stack before it is applied: the requests that Cloud Run, Cloud TPU and Compute Engine get.

They come from a preview of the program itself, so there is no second model of a service that could differ from the
deployed one. Nothing is created. Leaves out the equivalent commands (`commands_of_services`, `commands_of_leases`).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import yaml
from pydantic import Field

from bezel.engine.events.values import Resource
from bezel.engine.run.stack import stack_engine
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.plan import plain_all
from bezel.operations.changes.stack_runs import check_run, quiet
from bezel.operations.config.commands_of_leases import instance_command, queued_command
from bezel.operations.config.commands_of_services import service_command
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import REQUEST_TYPE, SERVICE_TYPE
from bezel.operations.results import Result
from bezel_base.errors import Problem, UserError
from bezel_base.terminal.blocks import Line
from bezel_base.text.redaction import redact

LATER = "(known after the deploy)"
"""Text in place of a value that only the deploy makes known."""


class ConfigArguments(Arguments):
    """Which stack, and in which form."""

    stack: Stack
    gcloud: Annotated[bool, Reach.INSIDE] = Field(
        default=False, description="print gcloud commands instead of the requests"
    )


class Request(Result):
    """A request that creates or updates a service or a machine."""

    name: str = Field(description="name of the service or the machine in the cloud")
    method: str = Field(description="method of the API, e.g. run.projects.locations.services.create")
    body: dict[str, Any] = Field(description="body of the request, secrets hidden")
    gcloud: str = Field(description="command that asks for the same")
    without_flag: tuple[str, ...] = Field(description="paths in the body that no flag of the command sets")


class Config(Result):
    """What a deploy of a stack sends."""

    is_padded = False
    stack: str
    requests: tuple[Request, ...]
    as_commands: bool = Field(description="whether the text has the commands instead of the bodies")

    def text(self) -> str:
        """The bodies as YAML documents, or the commands."""
        parts = []
        for each in self.requests:
            head = f"# {each.name}: {each.method}\n"
            if self.as_commands:
                missing = f"# No flag sets {', '.join(each.without_flag)}.\n" if each.without_flag else ""
                parts.append(f"{head}{missing}{each.gcloud}\n")
            else:
                parts.append(
                    head + yaml.dump(each.body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
                )
        return ("\n" if self.as_commands else "---\n").join(parts)

    def page(self) -> Iterator[Line]:
        """The same; documents and commands stay as they are, so that they can be copied."""
        yield Line(self.text().rstrip("\n"), is_verbatim=True)


def config(context: Context, arguments: ConfigArguments) -> Config:
    """The requests of a stack's deploy.

    Raises:
        UserError: The stack has no file, or cannot be previewed.
    """
    stack = arguments.stack
    with stack_engine(context.project, stack, context.environ) as prepared:
        context.show(f"previewing {stack}")
        run = quiet(context, prepared.engine).run("preview")
    check_run(run)
    if not run.ok:
        raise UserError(*plain_all(run.errors), title=f"The preview of {stack} failed")
    requests = tuple(each for resource in run.events.after.values() for each in _requests(resource))
    if not requests:
        repair = "look at what it deploys: `bezel plan`."
        raise UserError(Problem("STACK", stack, "it declares neither a service nor a machine.", repair))
    return Config(stack=stack, requests=requests, as_commands=arguments.gcloud)


def _requests(resource: Resource) -> Iterator[Request]:
    if resource.type == SERVICE_TYPE:
        yield _service(resource.inputs)
    elif resource.type == REQUEST_TYPE:
        yield _lease(resource.inputs)


def _service(inputs: Mapping[str, Any]) -> Request:
    # 0.3 s to import, which no other operation needs.
    from bezel_pulumi_offline.lifecycle.mapping import body
    from bezel_pulumi_offline.resources import TYPES

    name, place = str(inputs["name"]), f"projects/{inputs['project']}/locations/{inputs['location']}"
    shown = _display_value(inputs)
    sent = _without_nulls({"name": f"{place}/services/{name}", **body(TYPES[SERVICE_TYPE].fields, shown)})
    if labels := shown.get("labels"):
        sent["labels"] = labels  # the provider adds `goog-pulumi-provisioned: true`
    command, rest = service_command(sent)
    return Request(
        name=name, method="run.projects.locations.services.create", body=sent, gcloud=command, without_flag=rest
    )


def _lease(inputs: Mapping[str, Any]) -> Request:
    shown = _display_value(inputs)
    choices = tuple(ZoneChoice(each["zone"], float(each["patience_seconds"])) for each in shown["zones"])
    spec = LeaseSpec(
        project=shown["project"],
        name=shown["name"],
        stack=shown["stack"],
        back_end=shown["back_end"],
        zones=choices,
        subnetworks=shown["subnetworks"],
        body=shown["body"],
    )
    # The first zone; another one differs by its names and the wait.
    sent = spec.body_in(choices[0])
    is_queued = spec.back_end == "queued_resource"
    make = queued_command if is_queued else instance_command
    command, rest = make(sent, project=spec.project, zone=choices[0].zone)
    method = "tpu.projects.locations.queuedResources.create" if is_queued else "compute.instances.insert"
    return Request(name=spec.name, method=method, body=sent, gcloud=command, without_flag=rest)


def _display_value(value: Any) -> Any:
    """A value of a preview: what is not known yet is said, and what has the form of a credential is hidden."""
    from bezel_pulumi_offline.lifecycle.values import unknown

    if isinstance(value, Mapping):
        return {key: _display_value(item) for key, item in value.items() if not key.startswith("__")}
    if isinstance(value, list | tuple):
        return [_display_value(item) for item in value]
    if unknown(value):
        return LATER
    return redact(value) if isinstance(value, str) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Text of several lines as it is, line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
