"""Status of the regions of a stack: what Google says of each one's service, and what callers of all of them get.

Owns the reading of a region's service, the verdict of several regions together, and the sums over them. Leaves out the
verdict of one service (`verdict`), leases, and the address.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import Field

from bezel.leases.clock import unix
from bezel.operations.address.certificate import Certificate
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.live_price import beside_the_newest, live_inputs, live_service_cost
from bezel.operations.results import Result, Usd
from bezel.operations.rollback.passed import rollback_of
from bezel.operations.rollback.rollback_status import RollbackStatus
from bezel.operations.service_use.call_counts import Calls
from bezel.operations.service_use.calls import calls_of
from bezel.operations.service_use.service_use import InstancesNow, ServiceCost, service_use
from bezel.operations.status.live_service import min_instances, read_service
from bezel.operations.status.verdict import (
    AS_DECLARED,
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
from bezel.planner.base.money import Priced, round_usd
from bezel.rest import ApiError
from bezel_base.terminal.blocks import Table, mark

_S = TypeVar("_S")
_T = TypeVar("_T")
LiveServices = Sequence[tuple[DeployedService, dict[str, Any] | None]]
"""Each region's service, and as Cloud Run has it; None where it is gone."""
_CERTIFICATE_VERDICTS: Mapping[str, Verdict] = {"provisioning": "deploying", "failed": "failed", "gone": "failed"}


class RegionStatus(Result):
    """A region of a stack."""

    region: str
    verdict: Verdict = Field(description="what callers of its service get")
    reasons: tuple[str, ...] = Field(description="why the verdict is not ready, in Google's words where it has some")
    service: str = Field(description="projects/P/locations/L/services/S")
    url: str | None = Field(description="own URL of the service")
    revisions: tuple[Revision, ...] = Field(description="revisions that receive traffic")
    latest_revision: str | None = Field(description="revision that was created last, ready or not")
    newest: NewestRevision | None = Field(description="its state; null without one")
    calls: Calls | None = Field(description="requests of the last minutes; null without a revision that has traffic")
    min_instances: int | None
    max_instances: int | None
    instances: InstancesNow | None = Field(description="instances that run now")
    usd_per_hour: Usd | None = Field(description="price of an hour with all instances; null if unknown")
    usd_per_hour_idle: Usd | None = Field(description="price of an hour without traffic; null if unknown")
    service_cost: ServiceCost | None = Field(description="cost of the service so far")
    rollback: RollbackStatus | None = Field(description="rollback that decides where its traffic goes; null without")


@dataclass(frozen=True)
class ServiceReading:
    """What Google says of one region's service now.

    Attributes:
        service: The service.
        live: It in run v2's description; None where it is gone.
        beside: Further revisions that its traffic names.
        calls: Requests of the last minutes; None without a revision that has traffic.
        instances: Instances that run; None without a GPU.
        cost: Its cost so far; None without a GPU.
    """

    service: DeployedService
    live: dict[str, Any] | None
    beside: Sequence[Mapping[str, Any]] = ()
    calls: Calls | None = None
    instances: InstancesNow | None = None
    cost: ServiceCost | None = None

    @property
    def max_instances(self) -> int | None:
        """The most instances that the service or its newest revision may have; None for any number."""
        live = self.live or {}
        template = live.get("template") or {}
        return {**(template.get("scaling") or {}), **(live.get("scaling") or {})}.get("maxInstanceCount")


def live_services(context: Context, deployment: Deployment) -> LiveServices:
    """The service of each region as Cloud Run has it now, the first region first.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    return _map(lambda service: (service, read_service(context, service)), deployment.region_services)


def live_fallback(context: Context, deployment: Deployment) -> LiveServices:
    """The fallback of leased machines as Cloud Run has it now; empty without one.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    fallback = deployment.fallback
    return [] if fallback is None else [(fallback, read_service(context, fallback))]


def read_services(context: Context, services: LiveServices) -> list[ServiceReading]:
    """What Google says of these services now.

    Raises:
        RestError: Google could not be asked.
    """
    return _map(lambda each: _read(context, *each), services)


def _map(read: Callable[[_S], _T], each: Sequence[_S]) -> list[_T]:
    """Read of each region, at the same time."""
    if len(each) < 2:
        return list(map(read, each))
    with ThreadPoolExecutor(len(each)) as readers:
        return list(readers.map(read, each))


def _read(context: Context, service: DeployedService, live: dict[str, Any] | None) -> ServiceReading:
    if live is None:
        return ServiceReading(service, None)
    revisions = revisions_of(live)
    with ThreadPoolExecutor(2) as readers:
        beside = readers.submit(_revisions_beside, context, live)
        called = None
        if revisions:
            called = readers.submit(calls_of, context, service, {revision.name for revision in revisions})
        instances, cost = None, None
        if service.has_gpu:
            created = unix(live.get("createTime"))
            instances, cost = service_use(context, service, created, live_inputs(service, live))
    calls = None if called is None else called.result()
    return ServiceReading(service, live, beside.result(), calls, instances, cost)


def _revisions_beside(context: Context, live: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The revisions that the traffic names beside the newest one."""
    revisions = []
    for name in beside_the_newest(live):
        try:
            revisions.append(context.google.get(f"{context.address('CLOUD_RUN_V2')}{name}"))
        except ApiError as error:
            if error.status != 404:
                raise
    return revisions


def region_status(reading: ServiceReading, deployment: Deployment) -> RegionStatus:
    """The status of one region.

    Args:
        reading: Its service.
        deployment: The stack, of this region alone.
    """
    live = reading.live or {}
    revisions = revisions_of(live)
    verdict, reasons = gone_verdict(reading.service)
    if reading.live is not None:
        verdict, reasons = service_verdict(live, reading.calls, deployment.stack)
    price = live_service_cost(reading.service, reading.live, reading.beside)
    return RegionStatus(
        region=reading.service.location,
        verdict=verdict,
        reasons=reasons,
        service=reading.service.id,
        url=deployment.url or None,
        revisions=revisions,
        latest_revision=short_name(live.get("latestCreatedRevision")),
        newest=newest_revision(live, revisions),
        calls=reading.calls,
        min_instances=None if reading.live is None else min_instances(live),
        max_instances=reading.max_instances,
        instances=reading.instances,
        usd_per_hour=price.hourly.usd if isinstance(price.hourly, Priced) else None,
        usd_per_hour_idle=price.idle_hourly.usd if isinstance(price.idle_hourly, Priced) else None,
        service_cost=reading.cost,
        rollback=RollbackStatus.of(rollback_of(deployment, reading.live)),
    )


def gone_verdict(service: DeployedService) -> Judgement:
    """The verdict of a service that Cloud Run does not have."""
    return "gone", (f"Cloud Run has no {service.id}, which the state names",)


def of_regions(regions: Sequence[RegionStatus]) -> Judgement:
    """The verdict of several regions: degraded where one of them serves and another one does not. Pure."""
    verdicts = [each.verdict for each in regions]
    reasons = tuple(f"{each.region}: {reason}" for each in regions for reason in each.reasons)
    serving = [verdict for verdict in verdicts if verdict in AS_DECLARED]
    if len(serving) == len(verdicts):
        return ("ready", ()) if "ready" in verdicts else (verdicts[0], reasons)
    return ("degraded" if serving else verdicts[0]), reasons


def with_certificate(judgement: Judgement, certificate: Certificate | None) -> Judgement:
    """The verdict with the state of the address's certificate: without it no caller of the address connects. Pure."""
    if certificate is None or certificate.state == "active":
        return judgement
    verdict, reasons = judgement
    reason = f"the certificate of the address is {certificate.line()}"
    reason += f": {certificate.repair}" if certificate.repair else ""
    if certificate.state == "unknown" or verdict in {"unfinished", "gone", "failed"}:
        return verdict, (*reasons, reason)
    return _CERTIFICATE_VERDICTS[certificate.state], (reason, *reasons)


def all_calls(calls: Iterable[Calls | None]) -> Calls | None:
    """The requests to all regions; None where none has traffic."""
    each = [one for one in calls if one is not None]
    if len(each) < 2:
        return next(iter(each), None)
    newest = [one for one in each if one.newest_at is not None]
    latest = max(newest, key=lambda one: str(one.newest_at), default=None)
    return Calls(
        window_seconds=each[0].window_seconds,
        read=tuple(source for source in each[0].read if all(source in one.read for one in each)),
        unread=_once(one.unread for one in each),
        succeeded=sum(one.succeeded for one in each),
        failed=sum(one.failed for one in each),
        refused=sum(one.refused for one in each),
        abandoned=sum(one.abandoned for one in each),
        statuses=dict(sorted(sum((Counter(one.statuses) for one in each), Counter[str]()).items())),
        platform_says=next((one.platform_says for one in each if one.platform_says), None),
        revisions=tuple(revision for one in each for revision in one.revisions),
        loops=tuple(loop for one in each for loop in one.loops),
        newest_at=None if latest is None else latest.newest_at,
        age_seconds=None if latest is None else latest.age_seconds,
        recent_succeeded=sum(one.recent_succeeded for one in each),
        recent_failed=sum(one.recent_failed for one in each),
        is_cut=any(one.is_cut for one in each),
    )


def all_instances(readings: Sequence[ServiceReading]) -> InstancesNow | None:
    """The instances of all regions; None without a GPU service."""
    each = [(reading.service.location, reading.instances) for reading in readings if reading.instances is not None]
    instances = [one for _, one in each]
    if len(instances) < 2:
        return next(iter(instances), None)
    unknown = [f"{region}: {one.unknown_because}" for region, one in each if one.unknown_because]
    times = [one.sampled_at for one in instances if one.sampled_at is not None]
    ages = [one.age_seconds for one in instances if one.age_seconds is not None]
    return InstancesNow(
        count=_sum([one.count for one in instances], sum),
        active=_sum([one.active for one in instances], sum),
        idle=_sum([one.idle for one in instances], sum),
        sampled_at=min(times, default=None),
        age_seconds=max(ages, default=None),
        unknown_because="; ".join(unknown) or None,
    )


def all_costs(readings: Sequence[ServiceReading]) -> ServiceCost | None:
    """The cost so far of all regions; None without a GPU service."""
    each = [(reading.service.location, reading.cost) for reading in readings if reading.cost is not None]
    costs = [one for _, one in each]
    if len(costs) < 2:
        return next(iter(costs), None)
    unknown = [f"{region}: {one.unknown_because}" for region, one in each if one.unknown_because]
    return ServiceCost(
        usd=_sum([one.usd for one in costs], lambda amounts: sum(amounts, Decimal(0))),
        instance_seconds=_sum([one.instance_seconds for one in costs], sum),
        since=min(one.since for one in costs),
        is_partial=any(one.is_partial for one in costs),
        unknown_because="; ".join(unknown) or None,
    )


def region_table(regions: Sequence[RegionStatus]) -> Table:
    """A row for each region."""
    heads = ("region", "verdict", "revision", "requests failed", "running", "USD/h", "idle USD/h", "USD so far", "url")
    rows = []
    for each in regions:
        newest = each.newest
        revision = ", ".join(f"{one.name} {one.percent}%" for one in each.revisions)
        if newest is not None and newest.state != "serving":
            revision += f"; {newest.name} {newest.state}"
        calls, instances, cost = each.calls, each.instances, each.service_cost
        rows.append(
            (
                each.region,
                mark(verdict_text(each.verdict, None)),
                revision or "-",
                "-" if calls is None else f"{calls.failed} of {calls.number}",
                "unknown" if instances is None or instances.count is None else str(instances.count),
                *map(_amount, (each.usd_per_hour, each.usd_per_hour_idle, None if cost is None else cost.usd)),
                each.url or "-",
            )
        )
    return Table(heads, rows)


def _amount(amount: Decimal | None) -> str:
    return "unknown" if amount is None else round_usd(amount, 4)


def _sum(values: Sequence[_T | None], add: Callable[[list[_T]], _T]) -> _T | None:
    known_values = [value for value in values if value is not None]
    return add(known_values) if len(known_values) == len(values) else None


def _once(texts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for each in texts for text in each))
