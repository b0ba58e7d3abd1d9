"""Requests that a job of Cloud Scheduler sends to Google's APIs, again at each of its times.

Such a request buys hardware, changes what runs or opens access as a resource does. So one to an API of Google counts
only where it is understood whole: its method, its address, its headers and every field of its body. What it asks for is
then a lease, a service's minimum of instances, or nothing (it reads, stops or deletes). Any other request is unread:
nobody knows what it creates, so it has no price, and is refused. Leaves the leases themselves to `leases`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from bezel.cron import CronError, parse_cron, time_zone
from bezel.errors import NOT_SET
from bezel.planner.base.schedule import FOUR_WEEKS
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.google_hosts import Address, is_google_api, plain_address
from bezel.resource_cost.inputs import Inputs, camel
from bezel.resource_cost.leases import Lease, lease_of_instance, lease_of_queue, lease_of_vm
from bezel.resource_cost.request_fields import (
    INSTANCE,
    MINIMUM,
    NODE,
    QUEUED_RESOURCE,
    Fields,
    body_of,
    unread_field,
)
from bezel.resource_cost.scheduled_minimum import ScheduledMinimum

JOB = "gcp:cloudscheduler/job:Job"
_PROJECT = r"/projects/[^/:]+"
_ZONE = r"(?P<zone>[^/:]+)"
_TPU, _RUN = ("tpu.googleapis.com",), ("run.googleapis.com",)
_COMPUTE = ("compute.googleapis.com", "www.googleapis.com")


class _Form(NamedTuple):
    """A request that is understood: hosts, path, allowed names of its query, and the fields of its body."""

    hosts: tuple[str, ...]
    path: re.Pattern[str]
    query: frozenset[str] = frozenset()
    body: Fields | None = None


def _form(hosts: tuple[str, ...], path: str, *query: str, body: Fields | None = None) -> _Form:
    return _Form(hosts, re.compile(path), frozenset(query), body)


_QUEUE = _form(
    _TPU,
    rf"/v2(?:alpha1)?{_PROJECT}/locations/{_ZONE}/queuedResources",
    "queuedResourceId",
    "requestId",
    body=QUEUED_RESOURCE,
)
_NODES = _form(_TPU, rf"/v2(?:alpha1)?{_PROJECT}/locations/{_ZONE}/nodes", "nodeId", "requestId", body=NODE)
_INSTANCES = _form(_COMPUTE, rf"/compute/v1{_PROJECT}/zones/{_ZONE}/instances", "requestId", body=INSTANCE)
_SERVICE = _form(
    _RUN,
    r"/v2/projects/(?P<project>[^/:]+)/locations/(?P<location>[^/:]+)/services/(?P<service>[^/:]+)",
    "updateMask",
    body=MINIMUM,
)
_MASK = ("scaling.minInstanceCount", "scaling.min_instance_count")
# Requests that stop what runs, or only read.
_STOPS = (
    _form(_COMPUTE, rf"/compute/v1{_PROJECT}/zones/[^/:]+/instances/[^/:]+/(?:stop|suspend)", "requestId"),
    _form(_TPU, rf"/v2(?:alpha1)?{_PROJECT}/locations/[^/:]+/nodes/[^/:]+:stop"),
    _form(_RUN, rf"/v2{_PROJECT}/locations/[^/:]+/jobs/[^/:]+/executions/[^/:]+:cancel"),
)
# What may be deleted: machines, services and data that cost money. Nothing whose deletion opens or raises something, as
# a firewall rule, a policy, a lock or a limit does.
_ONE = r"/[^/:]+"
_DELETIONS = (
    _form(_TPU, rf"/v2(?:alpha1)?{_PROJECT}/locations/[^/:]+/(?:queuedResources|nodes){_ONE}", "force", "requestId"),
    _form(
        _COMPUTE,
        rf"/compute/v1{_PROJECT}/(?:zones|regions)/[^/:]+/(?:instances|instanceGroupManagers|disks){_ONE}",
        "requestId",
    ),
    _form(
        _RUN,
        rf"/v2{_PROJECT}/locations/[^/:]+/"
        rf"(?:(?:services|jobs|workerPools){_ONE}|services{_ONE}/revisions{_ONE}|jobs{_ONE}/executions{_ONE})",
    ),
    _form(
        ("container.googleapis.com",),
        rf"/v1{_PROJECT}/(?:locations|zones)/[^/:]+/clusters{_ONE}(?:/nodePools{_ONE})?",
    ),
    _form(
        ("aiplatform.googleapis.com",),
        rf"/v1{_PROJECT}/locations/[^/:]+/(?:endpoints|customJobs|trainingPipelines|batchPredictionJobs){_ONE}",
    ),
    _form(("batch.googleapis.com",), rf"/v1{_PROJECT}/locations/[^/:]+/jobs{_ONE}"),
)
# A method of Google's APIs that only reads is GET; some with a verb of their own do more (`:restore`, `:cancel`).
_READING_VERB = re.compile(r"[^:]*(?::(?:get|list|search|fetch|lookup|query|read|check|test)\w*)?")
_HEADERS = re.compile(r"accept|content-type|user-agent|x-goog-user-project|x-goog-request-params")
_JSON = re.compile(r"application/json(?:;\s*charset=utf-8)?", re.IGNORECASE)


class Unread(NamedTuple):
    """A request that is not understood: the input, its value, and what is not understood."""

    key: str
    value: str
    why: str


def request_of_job(inputs: Inputs) -> Lease | ScheduledMinimum | Unread | None:
    """What a job asks an API of Google for; None where it asks for nothing, or calls another server.

    Raises:
        InputError: An input of the request is not known yet, or its body cannot be read.
    """
    target = inputs.at("httpTarget")
    if not isinstance(target.values, Mapping):
        return None  # a message to a topic, or a request to an application of App Engine
    uri, method = target.text("uri") or "", (target.text("httpMethod") or "POST").upper()
    if not is_google_api(uri):
        return None
    address = plain_address(uri)
    unread = Unread(target.key("uri"), f"{method} {uri}", "this method at this address")
    if address is None or method not in ("GET", "HEAD", "DELETE", "POST", "PATCH"):
        return unread
    if header := _unread_header(target):
        return Unread(target.key("headers", header), header, "this header")
    if method in ("GET", "HEAD"):
        return None if _READING_VERB.fullmatch(address.path) else unread
    if method == "DELETE":
        return None if any(_place(form, address) for form in _DELETIONS) else unread
    if method == "POST" and any(_place(form, address) for form in _STOPS):
        return None
    return _understood(inputs, target, address, method) or unread


def token_for_another_host(inputs: Inputs) -> Unread | None:
    """A job that sends a token for Google's APIs to another host, which may then call these; None without one.

    Raises:
        InputError: The address is not known yet.
    """
    target = inputs.at("httpTarget")
    if target.get("oauthToken") is None or is_google_api(target.text("uri") or ""):
        return None
    return Unread(
        target.key("uri"), target.text("uri") or NOT_SET, "what this host does with a token for Google's APIs"
    )


def _unread_header(target: Inputs) -> str | None:
    """A header that can change what the request means, as X-HTTP-Method-Override and Content-Encoding do."""
    headers = target.get("headers")
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise target.refusal(headers, "expected headers by name.", "write them by name.", "headers")
    for name in map(str, headers):
        value = target.get("headers", name)
        plain = name.lower() != "content-type" or (isinstance(value, str) and _JSON.fullmatch(value))
        if not _HEADERS.fullmatch(name.lower()) or not plain:
            return name
    return None


def _place(form: _Form, address: Address) -> re.Match[str] | None:
    """The parts of the path, if this request has this form."""
    known = address.host in form.hosts and form.query.issuperset(address.query)
    return form.path.fullmatch(address.path) if known else None


def _understood(
    inputs: Inputs, target: Inputs, address: Address, method: str
) -> Lease | ScheduledMinimum | Unread | None:
    """What the request asks for; None where it has no known form."""
    forms = {"POST": (_QUEUE, _NODES, _INSTANCES), "PATCH": (_SERVICE,)}[method]
    form, place = next(((form, place) for form in forms if (place := _place(form, address))), (None, None))
    if form is None or place is None:
        return None
    body = body_of(target)
    if not isinstance(body.values, Mapping):
        raise target.refusal("(text)", "expected an object.", "write the body of the request.", "body")
    if field := unread_field(body.values, form.body):
        return Unread(body.key(*field), "(set)", f"the field {camel(field[-1])}, or its value")
    if form is _SERVICE:
        if address.query.get("updateMask") not in _MASK or body.get("scaling", "minInstanceCount") is None:
            return None
        count = body.count("scaling", "minInstanceCount")
        return ScheduledMinimum(*place.groups(), count, body.key("scaling", "minInstanceCount"))
    lease: Lease | None
    if form is _QUEUE:
        lease = lease_of_queue(body, (place["zone"],))
    elif form is _NODES:
        lease = lease_of_vm(Inputs({**body.values, "zone": place["zone"]}, body.where))
    else:
        lease = lease_of_instance(body, (place["zone"],))
    if lease is None:
        return Unread(body.key("machineType"), body.text("machineType") or NOT_SET, "this machine type")
    return replace(lease, name=_name(lease), monthly_hours=_monthly_hours(inputs, lease))


def _name(lease: Lease) -> str | None:
    """The label by which Bezel's request and its jobs are known as one lease."""
    return lease.labels.text("bezel-lease")


def _monthly_hours(inputs: Inputs, lease: Lease) -> Decimal:
    """Hours of a month, at most: each occurrence until the lease ends by itself, all hours without an end."""
    whole, (begin, end) = Decimal(HOURS_PER_MONTH), FOUR_WEEKS
    if lease.run_seconds is None:
        return whole
    try:
        cron, zone = parse_cron(inputs.text("schedule") or ""), time_zone(inputs.text("timeZone") or "UTC")
    except CronError:
        return whole
    span = Decimal((end - begin).total_seconds()) / 3600
    hours = sum(1 for _ in cron.between(begin, end, zone)) * Decimal(lease.run_seconds) / 3600
    # A schedule that does not occur in these four weeks occurs at least once in some month.
    return min(whole, max(hours * whole / span, Decimal(lease.run_seconds) / 3600))
