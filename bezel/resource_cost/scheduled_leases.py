"""Leases that a job of Cloud Scheduler requests: what the request asks for, and how many hours of a month that makes.

A job that sends a request for a machine buys hardware as a resource does, again at each of its times. Only requests
with a known address of Google's APIs are read: a queued resource, a node of the TPU API, a machine of Compute Engine. A
body that is not known yet is refused. Leaves the request itself to `leases`.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from urllib.parse import urlsplit

from bezel.cron import CronError, parse_cron, time_zone
from bezel.planner.base.schedule import FOUR_WEEKS
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.inputs import UNKNOWN, Inputs
from bezel.resource_cost.leases import Lease, lease_of_instance, lease_of_queue, lease_of_vm

JOB = "gcp:cloudscheduler/job:Job"
_QUEUE = re.compile(r"/v\d\w*/projects/[^/]+/locations/(?P<zone>[^/]+)/queuedResources")
_NODES = re.compile(r"/v\d\w*/projects/[^/]+/locations/(?P<zone>[^/]+)/nodes")
_INSTANCES = re.compile(r"/compute/\w+/projects/[^/]+/zones/(?P<zone>[^/]+)/instances")
_HOSTS = {
    "tpu.googleapis.com": (_QUEUE, _NODES),
    "compute.googleapis.com": (_INSTANCES,),
    "www.googleapis.com": (_INSTANCES,),
}


def lease_of_job(inputs: Inputs) -> Lease | None:
    """The lease that a job requests; None where its request is another one.

    Raises:
        InputError: The job requests a machine, and its body cannot be read.
    """
    target = inputs.at("httpTarget")
    uri = target.values.get("uri") if isinstance(target.values, Mapping) else None
    if uri is UNKNOWN or not isinstance(uri, str) or str(target.get("httpMethod") or "POST").upper() != "POST":
        return None
    parts = urlsplit(uri)
    forms = _HOSTS.get(parts.hostname or "", ())
    place = next((match for form in forms if (match := form.fullmatch(parts.path))), None)
    if place is None:
        return None
    body, zone = _body(target), place["zone"]
    lease: Lease | None
    if place.re is _QUEUE:
        lease = lease_of_queue(body, (zone,))
    elif place.re is _INSTANCES:
        lease = lease_of_instance(body, (zone,))
    else:
        lease = lease_of_vm(Inputs({**body.values, "zone": zone} if isinstance(body.values, dict) else {}, body.where))
    return replace(lease, name=_name(lease), monthly_hours=_monthly_hours(inputs, lease)) if lease else None


def _body(target: Inputs) -> Inputs:
    text = target.text("body") or ""
    try:
        return Inputs(json.loads(base64.b64decode(text, validate=True)), (*target.where, "body"))
    except (binascii.Error, ValueError):
        raise target.refusal("(text)", "expected JSON in base64.", "write the body of the request.", "body") from None


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
