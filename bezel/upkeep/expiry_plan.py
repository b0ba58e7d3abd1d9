"""Plan of an expiry run: stacks of the backend, leases and labelled resources are read, and what is over is found.

What cannot be read is a problem of the plan, never an empty list. Accounts have no labels: one is found by the service
that runs as it. Leaves out the rules (`findings`) and destroying (bezel.gitops.upkeep).
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bezel.engine.project.lease_zones import lease_zones
from bezel.engine.project.pipeline_file import ENVIRONMENTS, pipeline_of
from bezel.engine.project.project import Project
from bezel.engine.run.engine import exported_state
from bezel.engine.state.exported import State, resources_of
from bezel.leases.backends.interface import not_enabled
from bezel.leases.clock import PlatformClock
from bezel.leases.inventory import LeaseInventory, Leftover, sweep_plan
from bezel.leases.state.observation import Observation
from bezel.planner.base.hardware import find_leased_hardware
from bezel.planner.base.money import Priced
from bezel.planner.base.names import label
from bezel.planner.cost.lease_cost import lease_cost
from bezel.resource_cost.stack_cost import StateResource, stack_cost
from bezel.rest import ApiError, GoogleClient, RestError, endpoint
from bezel.upkeep.findings import (
    ENVIRONMENT,
    Finding,
    Kind,
    StackState,
    account_finding,
    labelled_finding,
    stack_finding,
    why_kept,
)
from bezel.upkeep.stacks import stacks_in_backend
from bezel_base.console import note
from bezel_base.errors import UserError, one_line
from bezel_base.text.shell import shell_word
from bezel_catalog import accelerators

_SERVICE = "gcp:cloudrunv2/service:Service"


@dataclass
class ExpiryPlan:
    """What is over, and what could not be looked at.

    Attributes:
        findings: What is over.
        leases: The leases among them, by place and name.
        kept: Name of each stack that is needed -> its `expires-at`, "" without one.
        unread: Labels of the stacks that could not be read; None if the backend could not be.
        problems: What could not be looked at.
        protected: Environments in which nothing is destroyed because it has expired.
    """

    findings: list[Finding] = field(default_factory=list)
    leases: dict[tuple[str, str], Leftover] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    unread: set[str] | None = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    protected: Collection[str] = ()


def make_plan(
    project: Project,
    cloud_project: str | None,
    clock: PlatformClock,
    client: GoogleClient,
    *,
    show: Callable[[str], None] = note,
    environ: Mapping[str, str] = os.environ,
) -> ExpiryPlan:
    """Read everything, and find what is over.

    Args:
        project: The Pulumi project.
        cloud_project: The Google Cloud project of leases and labelled resources.
        clock: The time.
        client: Client for Google's APIs.
        show: Gets each line of progress.
        environ: The environment that names the backend.
    """
    plan = ExpiryPlan()
    plan.protected = _protected_environments(project, plan)
    now = datetime.fromtimestamp(clock.now(), UTC)
    stacks = _read_stacks(project, plan, show, environ)
    for stack in stacks:
        try:
            finding = stack_finding(stack, now.date(), plan.protected)
        except ValueError:
            days = ", ".join(stack.expires_at)
            plan.problems.append(f"stack {stack.name}: its expires-at ({days}) is neither a date nor `never`")
            continue
        if finding:
            plan.findings.append(finding)
        else:
            plan.kept[stack.name] = ", ".join(stack.expires_at)
    if cloud_project is None:
        text = (
            "leases and labelled resources were not looked at: no Google Cloud project is named (GOOGLE_CLOUD_PROJECT)"
        )
        plan.problems.append(text)
        return plan
    stack_of_label = {label(stack.name): stack for stack in stacks}
    zones = lease_zones(project, show)
    add_leases(plan, LeaseInventory(client, clock, cloud_project, zones, show), stack_of_label, clock)
    if plan.unread is not None:  # else every resource would look like a leftover
        ids: dict[str, set[str]] = {}
        for stack in stacks:  # two names may give one label
            ids.setdefault(label(stack.name), set()).update(stack.ids)
        plan.findings += labelled_leftovers(client, cloud_project, _regions(project, zones), ids, plan)
    return plan


def _protected_environments(project: Project, plan: ExpiryPlan) -> Collection[str]:
    """The environments in which nothing is destroyed; all of them where the pipeline's file cannot be read."""
    try:
        return pipeline_of(project).protected
    except UserError as error:
        plan.problems.append(f"nothing is destroyed: {one_line(error)}")
        return ENVIRONMENTS


def _read_stacks(
    project: Project, plan: ExpiryPlan, show: Callable[[str], None], environ: Mapping[str, str]
) -> list[StackState]:
    try:
        names = [name for name, count in stacks_in_backend(project, environ).items() if count != 0]
    except UserError as error:
        plan.problems.append(f"the backend's stacks were not looked at: {one_line(error)}")
        plan.unread = None
        return []
    stacks = []
    for name in names:
        show(f"reading {name}")
        try:
            stack = read_stack(project, name, environ)
        except UserError as error:
            plan.problems.append(f"stack {name} was not looked at: {one_line(error)}")
            plan.unread = {*(plan.unread or ()), label(name)}
            continue
        if stack.resources:
            stacks.append(stack)
    return stacks


def read_stack(project: Project, name: str, environ: Mapping[str, str]) -> StackState:
    """A stack of the backend as it is now.

    Raises:
        UserError: Its state or its file cannot be read.
    """
    return stack_of(project, name, exported_state(project, name, environ))


def stack_of(project: Project, name: str, state: State | None) -> StackState:
    """A stack by its state and its file.

    Raises:
        UserError: Its file cannot be read.
    """
    settings = project.configuration(name) if name in project.stacks() else None
    return StackState(name, settings, resources_of(state))


def add_leases(plan: ExpiryPlan, inventory: LeaseInventory, stacks: Collection[str], clock: PlatformClock) -> None:
    """Add the leases that are over to a plan.

    Args:
        plan: The plan.
        inventory: The leases.
        stacks: Labels of the stacks of this backend.
        clock: The time.
    """
    try:
        leases = inventory.list()
    except UserError as error:
        plan.problems.append(f"leases were not looked at: {one_line(error)}")
        return
    known_stacks = None if plan.unread is None else {*stacks, *plan.unread}
    for leftover in sweep_plan(leases, now=clock.now(), known_stacks=known_stacks):
        lease = leftover.lease
        kept = _kept_lease(lease, stacks, plan.protected)
        plan.leases[lease.zone, lease.name] = leftover
        repair = f"`bezel tpu delete {shell_word(lease.name)} --zone {shell_word(lease.zone)}`"
        price = _lease_price(lease)
        plan.findings.append(Finding("lease", lease.name, leftover.why, repair, lease.zone, kept, price))


def _kept_lease(lease: Observation, stacks: Collection[str], protected: Collection[str]) -> str:
    if lease.stack not in stacks:
        return "it may belong to a stack in another backend"
    environment = lease.labels.get(ENVIRONMENT, "")
    return why_kept({environment} if environment else set(), protected)


def _lease_price(lease: Observation) -> str | None:
    """Price of an hour of a lease whose machine may be running; 0 for one that has ended."""
    if not lease.is_live:
        return "0.0000"
    hardware = find_leased_hardware(lease.hardware)
    price = lease_cost(hardware, zone=lease.zone, provisioning="flex-start").hourly if hardware else None
    return f"{price.usd:.4f}" if isinstance(price, Priced) else None


def _regions(project: Project, zones: Iterable[str]) -> list[str]:
    """Regions that may hold a stack's service: those with accelerators, or zones of leases, or in the stack files."""
    regions = {region for kind in accelerators().values() for region in (*kind.regions, *kind.regions_on_invitation)}
    regions |= {zone.rpartition("-")[0] for zone in zones}
    for stack in project.stacks():
        try:
            configuration = project.configuration(stack)
            named = configuration.get("regions")
            regions |= {str(configuration.get("region") or ""), *(map(str, named) if isinstance(named, list) else ())}
        except UserError:
            continue  # its problems are for the plan to report
    return sorted(regions - {""})


def labelled_leftovers(
    client: GoogleClient, project: str, regions: list[str], stacks: Mapping[str, Collection[str]], plan: ExpiryPlan
) -> Iterator[Finding]:
    """Labelled services with their accounts, repositories, buckets and stacks' own secrets that no stack holds.

    Args:
        client: Client for Google's APIs.
        project: The Google Cloud project.
        regions: Regions of services and repositories.
        stacks: Label of each stack that was read -> ids of its resources.
        plan: Gets the problems, and names the stacks that were not read.
    """
    lists: list[tuple[Kind, str, str, str, dict[str, str]]] = [
        ("bucket", "", f"{endpoint('STORAGE')}b", "items", {"project": project}),
        ("secret", "", f"{endpoint('SECRET_MANAGER')}projects/{project}/secrets", "secrets", {}),
    ]
    for region in regions:
        parent = f"projects/{project}/locations/{region}"
        lists.append(("service", region, f"{endpoint('CLOUD_RUN_V2')}{parent}/services", "services", {}))
        url = f"{endpoint('ARTIFACT_REGISTRY')}{parent}/repositories"
        lists.append(("repository", region, url, "repositories", {}))
    for kind, region, url, key, query in lists:
        try:
            rows = list(client.pages(url, key, params=query))
        except RestError as error:
            if not (isinstance(error, ApiError) and not_enabled(error)):
                where = f" in {region}" if region else ""
                plan.problems.append(f"labelled resources ({kind}){where} were not looked at: {one_line(error)}")
            continue
        for row in rows:
            name, labels = str(row["name"]).rpartition("/")[2], row.get("labels") or {}
            if labels.get("stack") in (plan.unread or ()):
                continue
            finding = labelled_finding(kind, name, region, labels, str(row["name"]), stacks)
            if finding is None:
                continue
            yield _add_price(finding, row, region) if kind == "service" else finding
            email = str((row.get("template") or {}).get("serviceAccount") or "")
            if kind == "service" and (account := account_finding(finding, email, project, stacks)):
                yield account


def _add_price(finding: Finding, service: Mapping[str, Any], region: str) -> Finding:
    """A service with its price: the API's fields have the names of the resource's inputs.

    The price of one without an accelerator, such as a door or a gateway, is unknown: it costs while it serves.
    """
    inputs = {**service, "location": region}
    cost = stack_cost([StateResource(finding.name, _SERVICE, inputs)])
    price = cost.as_json()["hourly_usd"] if cost.count else None
    return Finding(**{**vars(finding), "hourly_usd": None if price is None else str(price)})
