"""Requests that a job of Cloud Scheduler sends to Google's APIs, again at each of its times.

Such a request buys hardware, changes what runs or opens access as a resource does. So one to an API of Google counts
only where it is understood whole: its method, its address, its headers and every field of its body. What it asks for is
then a lease, a service's minimum of instances, or nothing (it reads, stops or deletes). Any other request is unread:
what it creates has no price, and it is refused. Leaves the leases themselves to `prices`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from bezel.planner.base.schedule import FOUR_WEEKS
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.inputs import Inputs, camel
from bezel.resource_cost.prices.leases import Lease, lease_of_instance, lease_of_queue, lease_of_vm
from bezel.resource_cost.prices.scheduled_minimum import ScheduledMinimum
from bezel.resource_cost.requests.fields import body_of, unread_field
from bezel.resource_cost.requests.forms import FORMS, Form, only_reads
from bezel.resource_cost.requests.google_hosts import is_google_api, plain_address
from bezel_base.cron import CronError, parse_cron, time_zone
from bezel_base.errors import NOT_SET

JOB = "gcp:cloudscheduler/job:Job"
_MASK = ("scaling.minInstanceCount", "scaling.min_instance_count")
# Any other header can change what a request means, as X-HTTP-Method-Override and Content-Encoding do.
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
    if address is None:
        return unread
    if header := _unread_header(target):
        return Unread(target.key("headers", header), header, "this header")
    if only_reads(method, address):
        return None
    for form in FORMS:
        if (place := form.places(method, address)) is not None:
            return (
                _asked_for(form, place, inputs, target, unread, address.query.get("updateMask")) if form.body else None
            )
    return unread


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
    """The first header that can change what the request means."""
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


def _asked_for(
    form: Form, place: Mapping[str, str], inputs: Inputs, target: Inputs, unread: Unread, mask: str | None
) -> Lease | ScheduledMinimum | Unread:
    """What a request with a body asks for, if each of its fields is understood."""
    body = body_of(target)
    if not isinstance(body.values, Mapping):
        raise target.refusal("(text)", "expected an object.", "write the body of the request.", "body")
    if name := unread_field(body.values, form.body):
        return Unread(body.key(*name), "(set)", f"the field {camel(name[-1])}, or its value,")
    if form.kind == "minimum":
        if mask not in _MASK or body.get("scaling", "minInstanceCount") is None:
            return unread
        count = body.count("scaling", "minInstanceCount")
        key = body.key("scaling", "minInstanceCount")
        return ScheduledMinimum(place["project"], place["location"], place["service"], count, key)
    lease: Lease | None
    if form.kind == "queued resource":
        lease = lease_of_queue(body, (place["zone"],))
    elif form.kind == "node":
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
