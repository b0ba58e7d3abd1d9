"""List of a project's stacks: their files, and what the backend holds of each. Asks no API of a service.

What cannot be read is not judged, and says why: without a login, or with a backend that answers the engine alone.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pydantic import Field

from bezel.leases.clock import unix
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import OptionalStack
from bezel.operations.changes.lock_owner import reader_of_locks
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.deployment.deployment import SERVICE_TYPE, Deployment
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, format_count, utc
from bezel.planner.base.expiry import EXPIRY, has_expired
from bezel_base.errors import UserError, one_line
from bezel_base.terminal.blocks import Block, Line, Table

_HEADS = ("stack", "model", "accelerator", "deployed", "revision", "ends", "lock", "url")
_MOST = 100
_READERS = 8
_WORD, _REASON = 200, 500


class ListStacksArguments(Arguments):
    """Which stacks."""

    stack: OptionalStack = Field(None, description="this stack only")


class ListedStack(Result):
    """A stack: its file, and what the backend holds. Null is unknown, or does not apply."""

    stack: str
    has_file: bool = Field(description="whether the project has its file")
    model: str | None = Field(description="model of the file")
    accelerator: str | None = Field(description="accelerator of the file")
    region: str | None = Field(description="region of the file")
    deployed: bool | None = Field(description="whether the backend holds resources of it; null: not judged")
    deployed_at: datetime | None = Field(description="last run of the engine that wrote its state")
    interrupted: bool | None = Field(description="whether a run ended in the middle: `recover` reconciles it")
    revision: str | None = Field(description="latest ready revision, as of that run")
    url: str | None = Field(description="address of the endpoint")
    expires_at: str | None = Field(description="label expires-at of the file: its last day in UTC, or never")
    is_over: bool | None = Field(description="whether that day is over")
    lease_ends_at: datetime | None = Field(description="end of its last lease, as of that run")
    lock: str | None = Field(description="who holds its lock; `free`; null: not judged")
    notes: tuple[str, ...] = Field(description="what is wrong with its file, and what is not judged, and why")


class StackList(Result):
    """Stacks of a project."""

    stacks: tuple[ListedStack, ...]
    left_out: int = Field(description="further stacks: name one to see it")
    notes: tuple[str, ...] = Field(description="what is not judged of any stack, and why")

    def page(self) -> tuple[Block, ...]:
        """A table of the stacks."""
        table = Table(_HEADS, [_row(stack) for stack in self.stacks]) if self.stacks else Line("no stacks")
        further = [f"{format_count(self.left_out, 'further stack')}: name one to see it"] if self.left_out else []
        notes = [*self.notes, *(f"{each.stack}: {note}" for each in self.stacks for note in each.notes)]
        return (table, *map(Line, further), *(Line(f"note: {note}") for note in notes))


def list_stacks(context: Context, arguments: ListStacksArguments) -> StackList:
    """The stacks of a project.

    Raises:
        UserError: There is no stack of that name.
    """
    files, notes = context.project.stacks(), []
    in_backend: list[str] | None = None
    try:
        in_backend = context.stacks()
    except UserError as error:
        notes.append(f"whether anything is deployed is not judged: {clean_text(one_line(error), _REASON)}")
    names = sorted({*files, *(in_backend or ())})
    if arguments.stack is not None:
        if arguments.stack not in names:
            context.project.stack_file(arguments.stack)
        names = [arguments.stack]
    lock_of, unread = reader_of_locks(context)
    if unread and in_backend is not None:
        notes.append(unread)
    row = partial(_row_of, context, files, in_backend, lock_of)
    with ThreadPoolExecutor(_READERS) as readers:
        stacks = tuple(readers.map(row, names[:_MOST]))
    return StackList(stacks=stacks, left_out=max(0, len(names) - _MOST), notes=tuple(notes))


def _row_of(
    context: Context, files: list[str], in_backend: list[str] | None, lock_of: Callable[[str], str | None], stack: str
) -> ListedStack:
    notes: list[str] = []

    def attempt(read: Callable[[], Any], what: str) -> Any:
        try:
            return read()
        except UserError as error:
            notes.append(f"{what}: {clean_text(one_line(error), _REASON)}")
            return None

    settings: Mapping[str, Any] = {}
    if stack in files:
        settings = attempt(lambda: context.project.configuration(stack), "its file cannot be read") or {}
    deployment: Deployment | None = None
    is_known = in_backend is not None
    if in_backend is not None and stack in in_backend:
        try:
            deployment = context.deployment(stack)
        except NotDeployedError:
            pass  # it is gone since the list was read
        except UserError as error:
            is_known = False
            notes.append(f"whether it is deployed is not judged: {clean_text(one_line(error), _REASON)}")
    lock = attempt(lambda: lock_of(stack), "its lock is not judged") if in_backend is not None else None
    expiry = _expiry(settings, context.clock.now(), notes)
    has_resources = deployment is not None and any(entry.get("custom") for entry in deployment.resources)
    ends = [lease.ends_at for lease in deployment.leases if lease.ends_at is not None] if deployment else []
    return ListedStack(
        stack=clean_text(stack, _WORD),
        has_file=stack in files,
        model=_word(settings.get("model")),
        accelerator=_word(settings.get("accelerator")),
        region=_word(_regions(settings)),
        deployed=has_resources if is_known else None,
        deployed_at=utc(unix(deployment.changed_at)) if deployment and has_resources else None,
        interrupted=deployment.is_pending if deployment else None,
        revision=_word(_revision(deployment)) if deployment else None,
        url=_word(deployment.url) if deployment else None,
        expires_at=expiry[0],
        is_over=expiry[1],
        lease_ends_at=utc(max(ends)) if ends else None,
        lock=lock,
        notes=tuple(notes),
    )


def _regions(settings: Mapping[str, Any]) -> object:
    """The region of a file, or its regions with commas between them."""
    regions = settings.get("regions")
    return ", ".join(map(str, regions)) if isinstance(regions, list) and regions else settings.get("region")


def _expiry(settings: Mapping[str, Any], now: float, notes: list[str]) -> tuple[str | None, bool | None]:
    """The `expires-at` of a file, and whether it is over."""
    labels = settings.get("labels")
    text = _word(labels.get(EXPIRY)) if isinstance(labels, Mapping) else None
    if text is None:
        return None, None
    try:
        return text, has_expired(text, datetime.fromtimestamp(now, UTC).date())
    except ValueError:
        notes.append(f"{EXPIRY} is neither a date nor `never`")
        return text, None


def _revision(deployment: Deployment) -> str:
    service = deployment.service
    outputs: Mapping[str, Any] = next(
        (
            entry.get("outputs") or {}
            for entry in deployment.resources
            if service and entry.get("type") == SERVICE_TYPE and entry.get("id") == service.id
        ),
        {},
    )
    return str(outputs.get("latestReadyRevision") or "").rpartition("/")[2]


def _word(value: object) -> str | None:
    return clean_text(str(value), _WORD) if value not in (None, "") else None


def _row(each: ListedStack) -> tuple[str, ...]:
    deployed = "not judged" if each.deployed is None else "yes" if each.deployed else "no"
    if each.deployed and each.deployed_at is not None:
        deployed = f"{each.deployed_at:%Y-%m-%d %H:%M}"
    deployed += ", interrupted" if each.interrupted else ""
    ends = f"{each.expires_at} (over)" if each.is_over else each.expires_at or "-"
    if each.lease_ends_at is not None:
        ends += f", lease {each.lease_ends_at:%Y-%m-%d %H:%M}"
    name = each.stack if each.has_file else f"{each.stack} (no file)"
    texts = (name, each.model, each.accelerator, deployed, each.revision, ends, each.lock or "not judged", each.url)
    return tuple(text or "-" for text in texts)
