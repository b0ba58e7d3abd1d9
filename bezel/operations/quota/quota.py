"""Quotas of the project: limit and use in each region and zone, what a stack needs of them, and requests for more.

The limits are Cloud Quotas', the use is the newest sample of Cloud Monitoring. What Google does not say is null, with
the reason as a note. Leaves sending a request to `request`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import Region, Zone
from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.operations.quota.known import KnownQuota, PlaceKind, known_by_id, known_quotas, needs_of
from bezel.operations.quota.places import is_in, refuse_both
from bezel.operations.quota.requests_made import QuotaRequest, requests_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, format_count
from bezel.planner import Plan
from bezel.planner.assemble.quota import QUOTA_API, USE_API, Need
from bezel.planner.assemble.quota import request as gcloud_request
from bezel.planner.assemble.quota_use import tight_deploy, worst_moment
from bezel.planner.base.hardware import Quota
from bezel.rest import ApiError, RestError
from bezel.rest.cloud_quotas import Counted, Limit, counted_everywhere, info_of, value_in
from bezel.rest.quota_preferences import preferences_of
from bezel.rest.run_services import services_of
from bezel_base.terminal.blocks import Block, Line, Table, mark
from bezel_base.text.shell import shell_word
from bezel_catalog.quantities import duration_text

_AT_ONCE = 8
_CONSOLE = "https://console.cloud.google.com/iam-admin/quotas?project={}"
_T = TypeVar("_T")


class QuotaArguments(Arguments):
    """Which places, and whose needs."""

    region: Annotated[Region | None, Reach.INSIDE] = Field(
        None, description="its quotas and those of its zones (default: all)"
    )
    zone: Annotated[Zone | None, Reach.INSIDE] = Field(
        None, description="its quotas and those of its region (default: all)"
    )
    stack: Annotated[str | None, Reach.INSIDE] = Field(
        None,
        max_length=100,
        description="stack: only what it counts in and may need, in its project (default: the environment's)",
    )


class QuotaRow(Result):
    """A quota in a place; amounts are in things such as GPUs, not in the API's unit."""

    title: str = Field(description="what it limits")
    service: str = Field(description="API that owns the quota, e.g. run.googleapis.com")
    quota: str = Field(description="id of the quota, as Google names it")
    place_kind: PlaceKind
    place: str = Field(description="region or zone")
    thing: str = Field(description="what the amounts count: GPU, chip, vCPU or GiB")
    unit: int = Field(description="the API's amount for one thing, e.g. 1000 for a quota in milli-GPU")
    limit: float | None = Field(description="null if unknown, or without a limit")
    is_unlimited: bool
    used: float | None = Field(description="by Cloud Monitoring's newest sample; null if unknown")
    used_seconds_ago: int | None = Field(description="age of that sample")
    needed: float | None = Field(description="what the stack may need at a time; null without a stack")
    is_short: bool = Field(description="whether the limit is known to be below what is needed")
    request: str = Field(description="command that requests the needed amount, or twice the limit")
    gcloud_request: str = Field(description="the same request as a gcloud command")


class QuotaReport(Result):
    """Quotas of a project."""

    project: str
    stack: str | None
    quotas: tuple[QuotaRow, ...]
    requests: tuple[QuotaRequest, ...] = Field(description="requests for other values, with their state")
    link: str = Field(description="page of the console that shows and raises them")
    notes: tuple[str, ...] = Field(description="what Google did not say, and why")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 if a quota is known to be smaller than the stack's need, or if no limit at all could be read."""
        is_unread = bool(self.quotas) and all(row.limit is None and not row.is_unlimited for row in self.quotas)
        return 1 if is_unread or any(row.is_short for row in self.quotas) else 0

    def page(self) -> Iterator[Block]:
        """A table of the quotas, the requests, and how more is requested."""
        heads = ("quota", "place", "limit", "used", *(("needed",) if self.stack else ()), "id")
        rows = [
            (
                row.title,
                row.place,
                _amount_text(row, math.inf if row.is_unlimited else row.limit),
                _amount_text(row, row.used)
                + ("" if row.used_seconds_ago is None else f", {duration_text(row.used_seconds_ago)} ago"),
                *((mark(f"{_amount_text(row, row.needed)}{' SHORT' if row.is_short else ''}"),) if self.stack else ()),
                row.quota,
            )
            for row in self.quotas
        ]
        yield Table(heads, rows) if rows else Line("no quota that the catalogue knows has a value there")
        lines = [f"raise it: {row.request}" for row in self.quotas if row.is_short]
        lines += [each.line for each in self.requests]
        lines += [f"more: `bezel quota request --help`, or {self.link}", *(f"note: {note}" for note in self.notes)]
        yield from map(Line, lines)


def _amount_text(row: QuotaRow, amount: float | None) -> str:
    if amount is None:
        return "unknown"
    return "no limit" if amount == math.inf else Quota("", "", row.thing).things(round(amount, 3))


def quota(context: Context, arguments: QuotaArguments) -> QuotaReport:
    """Limits and use of the quotas that deployments count in.

    Raises:
        UserError: No project is named, or the stack cannot be planned.
    """
    refuse_both(arguments.region, arguments.zone)
    project = context.cloud_project(arguments.stack)
    plan = None if arguments.stack is None else plan_of(context, arguments.stack)[0]
    needs = () if plan is None else needs_of(plan)
    wanted = _quotas_to_ask(needs, arguments)
    notes: list[str] = []
    context.show(f"asks Cloud Quotas and Cloud Monitoring about {format_count(len(wanted), 'quota')} of {project}")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(_answers, context, project, each) for each, _ in wanted]
        made = _or_note(lambda: preferences_of(context.google, project), notes, "requests for quotas are unknown")
        answers = [each.result() for each in asked]
    rows: list[QuotaRow] = []
    for (each, needed), (info, used, reasons) in zip(wanted, answers, strict=True):
        notes += reasons
        rows += _rows(each, needed, info, used, arguments, project)
    requests = requests_of(made or (), known_by_id(each for each, _ in wanted), arguments.region, arguments.zone)
    if arguments.stack is not None:
        # In other places the stack counts in nothing.
        counted_in = {(each.quota.id, place) for each, needed in wanted for place in (*needed, "all")}
        requests = tuple(each for each in requests if (each.quota, each.place) in counted_in)
    notes += _of_deploy(context, project, plan, rows) if isinstance(plan, Plan) else []
    return QuotaReport(
        project=project,
        stack=arguments.stack,
        quotas=tuple(rows),
        requests=requests,
        link=_CONSOLE.format(project),
        notes=tuple(dict.fromkeys(clean_text(note, 500) for note in notes)),
    )


def _quotas_to_ask(needs: tuple[Need, ...], arguments: QuotaArguments) -> list[tuple[KnownQuota, dict[str, int]]]:
    """The quotas to ask for, each with the needed amount by place; {} without a stack."""
    by_id = known_by_id(known_quotas())
    if arguments.stack is None:
        places = ((each, [place for place in each.places if _is_asked(place, arguments)]) for each in by_id.values())
        return [(each, {}) for each, there in places if there]
    needed: dict[KnownQuota, dict[str, int]] = {}
    for need in needs:
        if _is_asked(need.place, arguments):
            needed.setdefault(by_id[need.quota.service, need.quota.id], {})[need.place] = need.amount
    return list(needed.items())


def _is_asked(place: str, arguments: QuotaArguments) -> bool:
    return is_in(place, arguments.region, arguments.zone)


_Answers = tuple[Mapping[str, Any] | None, Mapping[str, Counted] | None, list[str]]


def _answers(context: Context, project: str, each: KnownQuota) -> _Answers:
    """The description of a quota, its use by place, and why one of them is unknown."""
    notes: list[str] = []
    client, definition = context.google, each.quota
    info = _or_note(
        lambda: info_of(client, project, definition.service, definition.id), notes, "limits are unknown", project
    )
    if info is None:
        return None, None, notes
    if definition.dimensions:
        names = ", ".join(name for name, _ in definition.dimensions)
        return info, None, [f"the use of {definition.id} is unknown: Cloud Monitoring does not count it by {names}"]
    metric, now = str(info.get("metric") or ""), datetime.fromtimestamp(context.clock.now(), UTC)
    used = _or_note(
        lambda: counted_everywhere(client, project, definition.service, metric, now), notes, "use is unknown", project
    )
    return info, used, notes


def _or_note(ask: Callable[[], _T], notes: list[str], what: str, project: str = "") -> _T | None:
    """The answer; None with a note where it was refused."""
    try:
        return ask()
    except ApiError as error:
        enable = f"; `gcloud services enable {QUOTA_API} {USE_API} --project={shell_word(project)}`" if project else ""
        enables = error.status == 403 and not error.is_disabled
        notes.append(f"{what}: {error.status} {error.reason}: {error.because}{enable if enables else ''}")
    except (RestError, ValueError) as error:
        notes.append(f"{what}: {error}")
    return None


def _of_deploy(context: Context, project: str, plan: Plan, rows: Iterable[QuotaRow]) -> list[str]:
    """What a deploy of the service needs at its worst moment in each region, beside the services that are there."""
    notes: list[str] = []
    address = context.address("CLOUD_RUN_V2")
    for region in (each.region for each in plan.regions):
        unknown = f"what an old revision and other services of {region} may hold is not judged"
        services = _or_note(partial(services_of, context.google, address, project, region), notes, unknown)
        if services is None:
            continue
        limits = {row.quota: row.limit for row in rows if row.place == region}
        for need in (need for need in needs_of(plan) if need.place == region):
            limit = limits.get(need.quota.id)
            moment = worst_moment(need, services, plan.service.name)
            if limit is not None and (warning := tight_deploy(moment, limit * need.quota.unit, project)):
                notes.append(warning.partition("\n")[0])
    return notes


def _rows(
    each: KnownQuota,
    needed: Mapping[str, int],
    info: Mapping[str, Any] | None,
    used: Mapping[str, Counted] | None,
    arguments: QuotaArguments,
    project: str,
) -> Iterable[QuotaRow]:
    definition = each.quota
    for place in needed or [place for place in each.places if _is_asked(place, arguments)]:
        allowed = (
            None
            if info is None
            else value_in(info, Limit(definition.service, definition.id, place, definition.dimensions))
        )
        limit = None if allowed is None else allowed.value
        counted, need = (used or {}).get(place), needed.get(place)
        more = need or (int(limit) * 2 if limit and limit != math.inf else 0) or definition.unit
        yield QuotaRow(
            title=each.title,
            service=definition.service,
            quota=definition.id,
            place_kind=each.kind,
            place=place,
            thing=definition.thing,
            unit=definition.unit,
            limit=None if limit is None or limit == math.inf else limit / definition.unit,
            is_unlimited=limit == math.inf,
            used=None if counted is None else counted.used / definition.unit,
            used_seconds_ago=None if counted is None else int(counted.age),
            needed=None if need is None else need / definition.unit,
            is_short=need is not None and limit is not None and need > limit,
            request=_request(definition, more / definition.unit, each.kind, place),
            gcloud_request=gcloud_request(Need(definition, place, more, 1), project, more),
        )


def _request(definition: Quota, amount: float, kind: PlaceKind, place: str) -> str:
    command = f"bezel quota request {shell_word(definition.id)} --amount {shell_word(f'{amount:g}')}"
    return f"{command} --zone {shell_word(place)}" if kind == "zone" else f"{command} --region {shell_word(place)}"
