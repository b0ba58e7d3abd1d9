"""Models that a deployed server serves, with what it says about them. Asks no service that has no instance."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.metrics.metrics import asleep
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, utc
from bezel.operations.service_use.instances import instances_of
from bezel.operations.serving.server import DeployedServer
from bezel_base.terminal.blocks import Block, Line, Table

_PATH = "/v1/models"
_MAX_BYTES = 1 << 20
_MOST = 100
_SECONDS, _WAKE_SECONDS = 30.0, 600.0
_NAME = 300


class ModelsArguments(Arguments):
    """Which stack."""

    stack: Stack
    wake: Wake = False
    region: ReadRegion = None


class ServedModel(Result):
    """A model as the server lists it. A field that it leaves out is null."""

    id: str = Field(description="name that requests give")
    root: str | None = Field(description="where the server read it from")
    parent: str | None = Field(description="model that an adapter belongs to")
    max_model_len: int | None = Field(description="longest prompt and answer together, in tokens")
    created_at: datetime | None = Field(description="time that the server gives, which is that of its answer")
    owned_by: str | None


class Models(Result):
    """Models of a stack's server."""

    stack: str
    url: str
    is_read: bool = Field(description="whether the server was asked; false where no instance is known to run")
    declared: str | None = Field(description="name that the stack declares; null if it is not recorded")
    is_declared_served: bool | None = Field(description="whether the server serves it; null if it was not asked")
    models: tuple[ServedModel, ...]
    notes: tuple[str, ...]
    simulated: bool = Field(description="whether the last smoke check met a simulated server")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where no server was asked, or where the declared model is not served."""
        return 0 if self.is_read and self.is_declared_served is not False else 1

    def page(self) -> Iterator[Block]:
        """A table of the models."""
        head = f"{self.stack}: {self.url}" + (" (simulated server)" if self.simulated else "")
        rows = [
            (each.id, "unknown" if each.max_model_len is None else str(each.max_model_len), each.root or "")
            for each in self.models
        ]
        yield from map(Line, (head, *(f"note: {text}" for text in self.notes)))
        yield from (Table(("model", "longest, in tokens", "read from"), rows),) if rows else ()


def models(context: Context, arguments: ModelsArguments) -> Models:
    """The models that a stack's server serves.

    Raises:
        UserError: The backend has no such stack, or the server did not answer.
    """
    deployment = context.deployment(arguments.stack).of_one_region(arguments.region)
    instances = instances_of(context, deployment)
    is_asked = instances.is_awake or arguments.wake
    served: tuple[ServedModel, ...] = ()
    notes: tuple[str, ...] = () if is_asked else (asleep(instances),)
    if is_asked:
        with DeployedServer(context, deployment) as server:
            reply = server.ask(_PATH, max_bytes=_MAX_BYTES, seconds=_WAKE_SECONDS if arguments.wake else _SECONDS)
            entries = reply.json().get("data")
            if reply.status != 200 or not isinstance(entries, list):
                raise server.refusal_error(_PATH, reply)
        served = tuple(_served_model(entry) for entry in entries[:_MOST] if isinstance(entry, Mapping))
        if len(entries) > _MOST:
            notes = (f"{len(entries)} are listed; the first {_MOST} are shown",)
    declared = deployment.model or None
    is_served = any(each.id == declared for each in served) if is_asked and declared else None
    if is_served is False:
        notes = (*notes, f"the stack declares {declared}, which the server does not serve")
    return Models(
        stack=deployment.stack,
        url=deployment.url,
        is_read=is_asked,
        declared=declared,
        is_declared_served=is_served,
        models=served,
        notes=(*notes, *deployment.region_notes),
        simulated=deployment.is_simulated,
    )


def _served_model(entry: Mapping[str, Any]) -> ServedModel:
    length, created = entry.get("max_model_len"), entry.get("created")
    return ServedModel(
        id=clean_text(str(entry.get("id") or ""), _NAME),
        root=_text(entry.get("root")),
        parent=_text(entry.get("parent")),
        max_model_len=length if isinstance(length, int) else None,
        created_at=utc(created) if isinstance(created, int) and 0 <= created < 2**33 else None,
        owned_by=_text(entry.get("owned_by")),
    )


def _text(value: object) -> str | None:
    return clean_text(value, _NAME) if isinstance(value, str) and value else None
