"""Status of stacks: what callers get, from what revision or lease, since when, and what it costs.

Owns the verdict of a stack from Google's own answers; that of its service is in `verdict`. Sends no
request to the server itself: a service without traffic has no instance, and a request would start one, which costs
money (`bezel query` sends one).
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from bezel.leases.backends.interface import BackEnd
from bezel.leases.clock import format_duration, unix
from bezel.leases.inventory import back_end_of
from bezel.leases.state.container import ContainerReport, report_of
from bezel.leases.state.ending import PREEMPTED, ending_of, is_over, next_step, state_of
from bezel.leases.state.observation import Observation, State
from bezel.operations.address.certificate import Certificate, certificate_of
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import OptionalStack
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import NODE_TYPE, NOT_GRANTED, REQUEST_TYPE, DeployedLease, Deployment
from bezel.operations.file_settings import FileSettings, file_rows, file_settings
from bezel.operations.live_price import live_cost
from bezel.operations.outside import declared_by, outside_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, Usd, utc
from bezel.operations.rollback.passed import rollback_of
from bezel.operations.rollback.rollback_status import RollbackStatus
from bezel.operations.service_use.call_counts import Calls
from bezel.operations.service_use.service_use import InstancesNow, ServiceCost
from bezel.operations.status.door import DoorStatus, door_status, with_door
from bezel.operations.status.last_served import LastServed, last_served
from bezel.operations.status.live_service import min_instances
from bezel.operations.status.regions import (
    RegionStatus,
    all_calls,
    all_costs,
    all_instances,
    gone_verdict,
    live_fallback,
    live_services,
    of_regions,
    read_services,
    region_status,
    region_table,
    with_certificate,
)
from bezel.operations.status.verdict import (
    AS_DECLARED,
    BY_REQUESTS,
    Judgement,
    NewestRevision,
    Revision,
    Verdict,
    newest_revision,
    revisions_of,
    service_verdict,
    short_name,
    verdict_text,
)
from bezel.operations.weights.weights_place import weights_line
from bezel.outside_changes.change import Kind, OutsideChange
from bezel.planner.base.hours import Window, is_within, next_start
from bezel.planner.base.money import Priced, round_usd
from bezel.resource_cost.stack_cost import StackCost, resources_in, stack_cost
from bezel.rest import ApiError
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role, Table, mark
from bezel_base.text.shell import shell_word

_READERS = 8
_WORD, _ENDING = 100, 300


class StatusArguments(Arguments):
    """Which stacks."""

    stack: OptionalStack = Field(None, description="name of the stack (default: all deployed stacks)")


class LeaseStatus(Result):
    """A leased machine."""

    name: str
    zone: str | None = Field(description="zone that holds it; None while it waits for capacity")
    state: str = Field(description="state as Google reports it now, e.g. active, waiting, ended, preempted, absent")
    ending: str | None = Field(description="how it ended; None while it is not over")
    ends_at: datetime | None = Field(description="end of its run duration; None without an end, and where it is over")
    left_seconds: int | None = Field(description="time until its end; None without an end, and where it is over")
    usd_per_hour: Usd | None = Field(description="price of an hour in its zone; None if unknown")
    usd_so_far: Usd | None = Field(description="cost of its accelerators until now; None if unknown")
    is_in_hours: bool | None = Field(description="whether it is in its hours now; None without hours")
    next_start: datetime | None = Field(description="next start of its hours; None without hours")
    container: str | None = Field(
        description="state of its container, e.g. running or exited, a minute old at most; None before the end of the "
        "boot, and where it cannot be read"
    )
    serves: bool | None = Field(description="whether the container's server answers; None where that is unknown")


class OutsideSetting(Result):
    """A live setting that costs money or opens access, and that the program does not declare so."""

    resource: str = Field(description="what has it, e.g. service llm")
    setting: str = Field(description="its name in Google's API, or the granted role")
    cloud: str = Field(description="its live value, or the member that has the role")
    program: str = Field(description="its declared value")
    kind: Kind = Field(description="access: it changes who has access; cost: it costs money")
    repair: str = Field(description="what to do")


class StackStatus(Result):
    """A stack."""

    stack: str
    verdict: Verdict = Field(description="what callers get; ready only where requests of the last minutes succeeded")
    reasons: tuple[str, ...] = Field(description="why the verdict is not ready, in Google's words where it has some")
    model: str | None = Field(description="name under which the model is served")
    url: str | None = Field(description="address of the endpoint")
    service: str | None = Field(description="projects/P/locations/L/services/S of the Cloud Run service or gateway")
    revisions: tuple[Revision, ...] = Field(description="revisions that receive traffic")
    latest_revision: str | None = Field(description="revision that was created last, ready or not")
    newest: NewestRevision | None = Field(description="its state; null without one")
    calls: Calls | None = Field(description="requests of the last minutes; null without a revision that has traffic")
    min_instances: int | None
    max_instances: int | None
    instances: InstancesNow | None = Field(description="instances that run now; None without a GPU service")
    leases: tuple[LeaseStatus, ...]
    created_at: datetime | None = Field(description="creation of the service, or start of the first lease")
    age_seconds: int | None
    deployed_at: datetime | None = Field(description="last run of the engine that changed the stack")
    expires_at: str | None = Field(description="date of the label expires-at, or never")
    usd_per_hour: Usd | None = Field(
        description="price of an hour with everything running, without a gateway; None if unknown"
    )
    usd_per_hour_idle: Usd | None = Field(description="price of an hour without traffic; None if unknown")
    usd_so_far: Usd | None = Field(
        description="cost until now: of leases since their start, of a service its billed time at the price of its "
        "present instances; None if unknown"
    )
    service_cost: ServiceCost | None = Field(description="cost of the service so far; None without a GPU service")
    weights: str | None = Field(description="where a start reads the weights from, how far and at what price; or null")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")
    rollback: RollbackStatus | None = Field(
        description="rollback that decides where the traffic goes; None without one"
    )
    outside: tuple[OutsideSetting, ...] = Field(description="settings that were changed outside of the program")
    not_judged: tuple[str, ...] = Field(description="settings that could not be read, each with the reason")
    file: FileSettings | None = Field(description="the stack file beside the last deploy; null without a file here")
    regions: tuple[RegionStatus, ...] = Field(
        (),
        description="each of several regions, the first one first; () for one. Requests, instances and costs of the "
        "stack are then their sums, and its service and revisions those of the first region",
    )
    certificate: Certificate | None = Field(None, description="certificate of the stack's address; null without one")
    door: DoorStatus | None = Field(None, description="door for callers by key; null without one")
    last_served: LastServed | None = Field(
        None, description="what its servers did in the last day; null while one runs, and for a stack without series"
    )


class Status(Result):
    """Status of one or all stacks."""

    stacks: tuple[StackStatus, ...]

    def page(self) -> Iterator[Block]:
        """The fields of one stack, a table for several."""
        if len(self.stacks) == 1:
            yield from _blocks(self.stacks[0])
            return
        if not self.stacks:
            yield Line("no stack is deployed")
            return
        heads = ("stack", "verdict", "revision or zone", "lease left", "USD/h", "idle USD/h", "url")
        yield Table(heads, [_row(stack) for stack in self.stacks])
        notes = [
            f"{stack.stack}: {name}: {text}"
            for stack in self.stacks
            for name, text in (*outside_rows(stack), *file_rows(stack.stack, stack.file))
            if name != "file"
        ]
        yield from map(Line, ("", *notes) if notes else ())

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 unless every stack is ready, has no callers, or is outside the hours of its leases."""
        return 1 if any(stack.verdict not in AS_DECLARED for stack in self.stacks) else 0


def status(context: Context, arguments: StatusArguments) -> Status:
    """The status of a stack, or of all deployed stacks.

    Raises:
        UserError: The backend has no such stack, or Google could not be asked.
    """
    if arguments.stack is not None:
        return Status(stacks=(stack_status(context, context.deployment(arguments.stack)),))
    with ThreadPoolExecutor(_READERS) as readers:
        deployments = list(readers.map(context.deployment, context.stacks()))
        deployed = [deployment for deployment in deployments if deployment.services or deployment.leases]
        return Status(stacks=tuple(readers.map(lambda each: stack_status(context, each), deployed)))


def stack_status(context: Context, deployment: Deployment, *, reads_series: bool = True) -> StackStatus:
    """The status of one stack.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        reads_series: Whether the series that the stack keeps are read where no instance runs.

    Raises:
        RestError: Google could not be asked.
    """
    services = live_services(context, deployment)
    service, live = services[0] if services else (None, None)
    leases = [lease_status(context, lease) for lease in deployment.leases]
    revisions = revisions_of(live or {})
    created = unix((live or {}).get("createTime"))
    starts = [lease.active_at for lease in deployment.leases if lease.active_at is not None]
    since = min(starts, default=None) if created is None else created
    with ThreadPoolExecutor(4) as beside:
        declared = declared_by(deployment.resources)
        by_id = {each.id: live_one for each, live_one in services if live_one is not None}
        outside = beside.submit(outside_of, context, deployment.stack, declared, services=by_id)
        beside_file = beside.submit(file_settings, context, deployment, live)
        address = deployment.address
        certified = beside.submit(certificate_of, context, address, deployment.stack) if address else None
        of_door = beside.submit(door_status, context, deployment)
        readings = read_services(context, services)
        with_fallback = [*readings, *read_services(context, live_fallback(context, deployment))]
        instances = all_instances(with_fallback)
        is_gone = not (instances is not None and instances.count) and not any(map(may_serve, leases))
        served = beside.submit(last_served, context, deployment) if is_gone and reads_series else None
        weights = weights_line(context, deployment)
    findings, first, door = outside.result(), next(iter(readings), None), of_door.result()
    certificate = None if certified is None else certified.result()
    regions: tuple[RegionStatus, ...] = ()
    if len(readings) > 1:
        regions = tuple(region_status(each, deployment.of_one_region(each.service.location)) for each in readings)
    calls, spent = all_calls(each.calls for each in readings), all_costs(with_fallback)
    verdict, reasons = with_certificate(verdict_of(deployment, live, leases, calls, regions), certificate)
    verdict, reasons = with_door((verdict, reasons), door)
    cost = live_cost(
        deployment,
        live,
        () if first is None else first.beside,
        {each.service.id: (each.live, each.beside) for each in readings[1:]},
    )
    return StackStatus(
        stack=deployment.stack,
        verdict=verdict,
        reasons=reasons,
        model=deployment.model or None,
        url=deployment.url or None,
        service=None if service is None else service.id,
        revisions=revisions,
        latest_revision=short_name((live or {}).get("latestCreatedRevision")),
        newest=newest_revision(live or {}, revisions),
        calls=calls,
        min_instances=None if live is None else min_instances(live),
        max_instances=None if first is None else first.max_instances,
        instances=instances,
        leases=tuple(leases),
        created_at=utc(since),
        age_seconds=None if since is None else int(context.clock.now() - since),
        deployed_at=utc(unix(deployment.changed_at)),
        expires_at=((live or {}).get("labels") or {}).get("expires-at"),
        usd_per_hour=cost.hourly.usd if isinstance(cost.hourly, Priced) else None,
        usd_per_hour_idle=_idle(cost, leases, deployment),
        usd_so_far=_sum([lease.usd_so_far for lease in leases] + ([] if spent is None else [spent.usd])),
        service_cost=spent,
        weights=weights,
        simulated=deployment.is_simulated,
        rollback=regions[0].rollback if regions else RollbackStatus.of(rollback_of(deployment, live)),
        outside=tuple(OutsideSetting(**asdict(change)) for change in findings.changes if change.kind != "rollback"),
        not_judged=tuple(item.line() for item in findings.not_judged),
        file=beside_file.result(),
        regions=regions,
        certificate=certificate,
        door=door,
        last_served=None if served is None else served.result(),
    )


def newest_row(stack: StackStatus) -> Iterator[tuple[str, str]]:
    """A row about the newest revision where it does not serve, or where the platform says something against it."""
    newest = stack.newest
    if newest is not None and (newest.state != "serving" or newest.reason):
        reason = None if newest.reason in stack.reasons else newest.reason
        # Google adds the address of a log to its sentences, in a paragraph of its own.
        suffix = f": {reason.splitlines()[0]}" if reason else ""
        yield "newest", f"{newest.name}, {newest.state}{suffix}"


def outside_rows(stack: StackStatus) -> Iterator[tuple[str, str]]:
    """Rows about a rollback, about what was changed outside of the program, and about what could not be read."""
    if stack.rollback is not None and not stack.regions:
        yield "rolled back", stack.rollback.line()
    for region in stack.regions:
        if region.rollback is not None:
            yield "rolled back", f"{region.region}: {region.rollback.line()}"
    for each in stack.outside:
        yield "outside", OutsideChange(**each.model_dump()).line()
        yield "repair", each.repair
    for text in stack.not_judged:
        yield "not judged", text.replace(": not judged,", ":", 1)


def _idle(cost: StackCost, leases: Sequence[LeaseStatus], deployment: Deployment) -> Decimal | None:
    """Price of an hour without traffic; a machine that is not there costs nothing, and an address as ever."""
    paid = [lease for lease in leases if lease.state not in _UNPAID]
    if len(paid) == len(leases):
        return cost.idle_hourly.usd if isinstance(cost.idle_hourly, Priced) else None
    others = [each for each in resources_in(deployment.resources) if each.type not in (NODE_TYPE, REQUEST_TYPE)]
    beside = stack_cost(others).idle_hourly
    return _sum([*(lease.usd_per_hour for lease in paid), beside.usd if isinstance(beside, Priced) else None])


def lease_status(context: Context, lease: DeployedLease) -> LeaseStatus:
    """The status of one lease.

    Raises:
        RestError: Google could not be asked.
    """
    back_end = back_end_of(lease.back_end, context.google, lease.project)
    zones = tuple(dict.fromkeys(filter(None, (lease.zone, *lease.zones))))
    observed = next((observation for zone in zones if (observation := back_end.observe(zone, lease.name)).exists), None)
    now = context.clock.now()
    active_at, ends_at = _times(lease, observed)
    zone = lease.zone if observed is None else observed.zone
    hourly = lease.hourly_usd.get(zone)
    price = None if hourly is None else Decimal(str(hourly))
    end = now if ends_at is None else min(now, ends_at)
    hours = None if active_at is None else Decimal(str(max(0.0, end - active_at))) / 3600
    over = is_over(observed)
    is_early = over and (ends_at is None or ends_at > now)
    # An end that was recorded is that of an earlier machine while another one is awaited.
    planned = ends_at if observed is None or observed.state not in _AWAITED else None
    report = None if observed is None else _container(back_end, observed)
    instant, windows = datetime.fromtimestamp(now, UTC), [Window(*window) for window in lease.hours]
    return LeaseStatus(
        name=lease.name,
        zone=zone or None,
        state=state_of(observed),
        ending=clean_text(ending_of(observed, planned_end=ends_at, now=now), _ENDING) or None,
        ends_at=None if is_early else utc(planned),
        left_seconds=None if planned is None or over else max(0, int(planned - now)),
        usd_per_hour=price,
        # When a lease that is gone early was billed last is not known.
        usd_so_far=None if price is None or hours is None or is_early else price * hours,
        is_in_hours=is_within(windows, instant) if windows else None,
        next_start=next_start(windows, instant) if windows else None,
        container=None if report is None else clean_text(report.state, _WORD),
        serves=None if report is None else report.is_healthy,
    )


def _container(back_end: BackEnd, lease: Observation) -> ContainerReport | None:
    """The container as its machine reports it; None without a report, and for a caller who may not read it."""
    if lease.state is not State.ACTIVE:
        return None
    try:
        return report_of(back_end.guest_attributes(lease.zone, lease.name))
    except ApiError:
        return None


def _times(lease: DeployedLease, observed: Observation | None) -> tuple[float | None, float | None]:
    if observed is None:
        return lease.active_at, lease.ends_at
    return observed.active_at or lease.active_at, observed.ends_at or lease.ends_at


def verdict_of(
    deployment: Deployment,
    live: Mapping[str, Any] | None,
    leases: Sequence[LeaseStatus],
    calls: Calls | None,
    regions: Sequence[RegionStatus] = (),
) -> Judgement:
    """The verdict and its reasons. Of several leases one that serves is enough, if callers got their answers.

    Where none does, a fallback serves.
    """
    if deployment.is_pending:
        repair = f"`bezel recover {shell_word(deployment.stack)}` reconciles it"
        return "unfinished", (f"a run of the engine ended in the middle of an operation: {repair}",)
    if regions:
        return of_regions(regions)
    if deployment.service is not None and live is None:
        return gone_verdict(deployment.service)
    of_leases = _leases_verdict(deployment, leases)
    of_service = service_verdict(live or {}, calls, deployment.stack)
    if of_leases is None:
        return of_service
    if deployment.fallback is not None and not any(may_serve(lease) for lease in leases):
        reasons = _refused_reasons(deployment) or of_leases[1]
        return of_service[0], (*of_service[1], f"the fallback {deployment.fallback.name} serves", *reasons)
    if any(may_serve(lease) for lease in leases) and of_service[0] in BY_REQUESTS:
        return of_service[0], (*of_service[1], *of_leases[1])
    return of_leases


def _refused_reasons(deployment: Deployment) -> tuple[str, ...]:
    """Why a fallback serves where no zone has granted a lease."""
    command = f"`bezel deploy {shell_word(deployment.stack)}`"
    names = [lease.name for lease in deployment.leases if lease.state == NOT_GRANTED]
    return tuple(f"lease {name} was not granted: {command} requests it again" for name in names)


def may_serve(lease: LeaseStatus) -> bool:
    """Whether a lease is there, and nothing says that its container does not serve."""
    return lease.state == State.ACTIVE and lease.serves is not False and lease.container in _RUNNING


def _leases_verdict(deployment: Deployment, leases: Sequence[LeaseStatus]) -> Judgement | None:
    """The verdict by the leases, the worst of them; None where each may serve."""
    for states, verdict in _LEASE_VERDICTS:
        if concerned := [lease for lease in leases if lease.state in states]:
            if verdict == "ended" and all(lease.is_in_hours is False for lease in concerned):
                return "off-hours", tuple(_next_lease(lease) for lease in concerned)
            return verdict, tuple(_lease_reason(deployment.stack, lease) for lease in concerned)
    if stopped := [lease for lease in leases if lease.container not in _RUNNING]:
        repair = f"`bezel container start {shell_word(deployment.stack)}` starts it"
        return "stopped", tuple(f"the container of {lease.name} is {lease.container}: {repair}" for lease in stopped)
    if starting := [lease.name for lease in leases if lease.serves is False]:
        return "deploying", tuple(f"the container of {name} does not serve yet" for name in starting)
    return None


def _lease_reason(stack: str, lease: LeaseStatus) -> str:
    """What a lease that is not active does, and what gets another one where it is over."""
    if lease.ending is None:
        return f"lease {lease.name} is {lease.state}"
    at = "" if lease.next_start is None else f"{lease.next_start:%Y-%m-%d %H:%M} UTC"
    then = next_step(f"bezel deploy {shell_word(stack)}", next_start=at)
    return f"lease {lease.name} is {lease.state} ({lease.ending}): {then}"


def _next_lease(lease: LeaseStatus) -> str:
    if lease.next_start is None:
        return f"lease {lease.name} is outside its hours, which do not begin again"
    return (
        f"lease {lease.name} is outside its hours: the next one is requested at {lease.next_start:%Y-%m-%d %H:%M} UTC"
    )


_RUNNING = frozenset({None, "running", "restarting"})
"""States of a container that may serve; None where it cannot be read."""
_AWAITED = frozenset({State.WAITING, State.PROVISIONING})
_UNPAID = frozenset({PREEMPTED, State.ABSENT, State.REFUSED, State.WAITING, State.ENDED, State.FAILED})
_LEASE_VERDICTS: tuple[tuple[frozenset[str], Verdict], ...] = (
    (frozenset({State.FAILED, State.REFUSED}), "failed"),
    (frozenset({PREEMPTED, State.ENDED, State.ENDING, State.DELETING, State.ABSENT}), "ended"),
    (frozenset({State.WAITING, State.PROVISIONING}), "waiting"),
)


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known_amounts = [amount for amount in amounts if amount is not None]
    return sum(known_amounts, Decimal(0)) if known_amounts and len(known_amounts) == len(amounts) else None


def _blocks(stack: StackStatus) -> tuple[Block, ...]:
    """A stack with its fields."""
    traffic = ", ".join(f"{revision.name} {revision.percent}%" for revision in stack.revisions)
    scale = None if stack.min_instances is None else f"{stack.min_instances} to {stack.max_instances or 'any number'}"
    simulated = " (simulated server)" if stack.simulated else ""
    rows = [
        ("verdict", mark(verdict_text(stack.verdict, stack.calls) + simulated)),
        *(("details" if reason.startswith("`") else "because", reason) for reason in stack.reasons),
        ("model", stack.model),
        ("url", stack.url),
        ("certificate", None if stack.certificate is None else stack.certificate.line()),
        ("door for keys", None if stack.door is None else stack.door.line()),
        *(() if stack.regions else (("service", stack.service), ("revision", traffic or None), *newest_row(stack))),
        ("requests", None if stack.calls is None else stack.calls.line()),
        ("instances", scale if not (stack.leases or stack.regions) else None),
        ("running", None if stack.instances is None else stack.instances.line()),
        ("served", None if stack.last_served is None else stack.last_served.summary),
        *((f"lease {lease.name}", _lease_line(lease)) for lease in stack.leases),
        ("age", None if stack.age_seconds is None else format_duration(stack.age_seconds)),
        ("expires", stack.expires_at),
        ("price", _price(stack)),
        ("cost so far", _so_far(stack)),
        ("weights", stack.weights),
        *outside_rows(stack),
        *file_rows(stack.stack, stack.file),
    ]
    table = (Line(), region_table(stack.regions)) if stack.regions else ()
    return (Line(stack.stack, Role.HEADING), NamedValues(rows), *table)


def _price(stack: StackStatus) -> str:
    """The price of an hour; of leases without their gateway, which has no accelerator."""
    price = f"{_usd(stack.usd_per_hour)} per hour with everything running, {_usd(stack.usd_per_hour_idle)} idle"
    gateway = f"; without the gateway, which costs while it serves: `bezel cost {shell_word(stack.stack)}` has both"
    return price + (gateway if stack.leases else "")


def _so_far(stack: StackStatus) -> str | None:
    cost = stack.service_cost
    if cost is None:
        return _usd(stack.usd_so_far) if stack.leases else None
    if cost.usd is None:
        return f"unknown ({cost.unknown_because})"
    kept = " (Cloud Monitoring keeps six weeks)" if cost.is_partial else ""
    return f"{_usd(stack.usd_so_far)} since {cost.since:%Y-%m-%d %H:%M} UTC{kept}, at the present price of an instance"


def time_left(lease: LeaseStatus) -> str:
    """The time that a lease has left, for people; of one that is over, its next start or nothing."""
    if lease.left_seconds:
        return f"{format_duration(lease.left_seconds)} left"
    if lease.next_start is not None:
        return f"next start {lease.next_start:%Y-%m-%d %H:%M} UTC"
    if lease.ending is not None:
        return "no time left"
    return "without an end" if lease.ends_at is None else "ended"


def _lease_line(lease: LeaseStatus) -> str:
    left = time_left(lease)
    container = f", container {lease.container}" if lease.container else ""
    return f"{lease.state}, {lease.zone or 'no zone yet'}{container}, {left}, {_usd(lease.usd_so_far)} so far"


def _row(stack: StackStatus) -> tuple[object, ...]:
    left = [lease.left_seconds for lease in stack.leases if lease.left_seconds is not None]
    place = ", ".join(revision.name for revision in stack.revisions if not (stack.leases or stack.regions))
    place = place or ", ".join(f"{each.region} ({each.verdict})" for each in stack.regions)
    zones = ", ".join(lease.zone or "-" for lease in stack.leases)
    return (
        stack.stack,
        mark(verdict_text(stack.verdict, None)),
        zones or place or "-",
        format_duration(min(left)) if left else "-",
        _amount(stack.usd_per_hour),
        _amount(stack.usd_per_hour_idle),
        stack.url or "-",
    )


def _amount(amount: Decimal | None) -> str:
    return "unknown" if amount is None else round_usd(amount, 4)


def _usd(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"{round_usd(amount, 4)} USD"
