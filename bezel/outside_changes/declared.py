"""Declarations of a stack: its resources in Google Cloud, as its state or the run of its program has them. Pure.

A grant is declared by a resource of its own; it is kept under the name of what it is a grant on, as Google's API has
it: `projects/P/locations/L/services/S`, `b/BUCKET`, `projects/P`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SERVICE = "gcp:cloudrunv2/service:Service"
ACCOUNT = "gcp:serviceaccount/account:Account"
BUCKET = "gcp:storage/bucket:Bucket"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
JOB = "gcp:cloudscheduler/job:Job"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"
NAT = "gcp:compute/routerNat:RouterNat"
_DYNAMIC = "pulumi-python:dynamic/components:"
MINIMUM, SWITCH, REQUEST, NODE = (
    f"{_DYNAMIC}{name}" for name in ("ScheduledMinimum", "TrafficSwitch", "TpuRequest", "TpuNode")
)
# In programs that use the Pulumi package: the same inputs and outputs under another type.
_OF_PACKAGE = {f"bezel:components:{each.rpartition(':')[2]}": each for each in (MINIMUM, SWITCH)}
# Type of a grant -> name of what it is a grant on, from its inputs.
GRANTS = {
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember": "projects/{project}/locations/{location}/services/{name}",
    "gcp:serviceaccount/iAMMember:IAMMember": "{serviceAccountId}",
    "gcp:projects/iAMMember:IAMMember": "projects/{project}",
    "gcp:storage/bucketIAMMember:BucketIAMMember": "b/{bucket}",
    "gcp:secretmanager/secretIamMember:SecretIamMember": "projects/{project}/secrets/{secretId}",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": (
        "projects/{project}/locations/{location}/repositories/{repository}"
    ),
}
_NAMES = {
    SERVICE: "projects/{project}/locations/{location}/services/{name}",
    REPOSITORY: "projects/{project}/locations/{location}/repositories/{repositoryId}",
    BUCKET: "b/{name}",
    JOB: "projects/{project}/locations/{region}/jobs/{name}",
    NETWORK: "projects/{project}/global/networks/{name}",
    SUBNETWORK: "projects/{project}/regions/{region}/subnetworks/{name}",
    FIREWALL: "projects/{project}/global/firewalls/{name}",
    NAT: "projects/{project}/regions/{region}/routers/{router}/{name}",
}
TYPES = frozenset({*_NAMES, *GRANTS, ACCOUNT, MINIMUM, SWITCH, REQUEST, NODE})
"""Types of the resources that say what is declared."""
_EMAIL = re.compile(r"[^/@\s]+@[^/@\s]+")


class Entry(NamedTuple):
    """A resource: its type, its id ("" before it exists), and its values."""

    type: str
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class Grant(NamedTuple):
    """A role of a member, under a condition ("" without one)."""

    role: str
    member: str
    condition: str = ""


@dataclass(frozen=True)
class Machine:
    """A leased machine: its request, the zones that may hold it, and its subnetworks (none where it names none)."""

    project: str
    name: str
    back_end: str
    zones: tuple[str, ...]
    body: Mapping[str, Any]
    subnetworks: tuple[str, ...] = ()


@dataclass
class Declared:
    """What a program declares, by the names of Google's APIs.

    Attributes:
        services: Inputs of each Cloud Run service.
        minima: Minima that a schedule sets, by service.
        switched: Revision that a gated rollout moved the traffic to, by service; "" where that is not known yet.
        ended: Time of the rollback that the last move of the traffic ended, by service.
        released: Services whose traffic was moved to the newest revision after their update.
        accounts: E-mail of each service account.
        buckets: Inputs of each bucket that the program made; None for one that it only uses.
        secrets: Secrets that it grants access to.
        repositories: Inputs of each repository of Artifact Registry, with the state of its scanner when it was read.
        networks: Networks.
        subnetworks: Inputs of each subnetwork.
        firewalls: Inputs of each firewall rule.
        nats: Translations of addresses, each as its router and its name.
        machines: Leased machines.
        jobs: Jobs of Cloud Scheduler.
        grants: Grants on each resource.
    """

    services: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    minima: dict[str, frozenset[int]] = field(default_factory=dict)
    switched: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    accounts: dict[str, str] = field(default_factory=dict)
    buckets: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    repositories: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    networks: list[str] = field(default_factory=list)
    subnetworks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    firewalls: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    nats: set[str] = field(default_factory=set)
    machines: list[Machine] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)
    grants: defaultdict[str, set[Grant]] = field(default_factory=lambda: defaultdict(set))


def entries_in(resources: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The resources of a state that say what is declared, without those that are still to be deleted.

    Args:
        resources: `deployment.resources` of an exported state, its secrets masked or encrypted.
    """
    typed = ((_OF_PACKAGE.get(str(entry.get("type")), entry.get("type")), entry) for entry in resources)
    return [
        Entry(str(type_), str(entry.get("id") or ""), entry.get("inputs") or {}, entry.get("outputs") or {})
        for type_, entry in typed
        if type_ in TYPES and not entry.get("delete") and not entry.get("external")
    ]


def declared_in(entries: Sequence[Entry]) -> Declared:
    """What these resources declare."""
    declared = Declared()
    requests = {str(entry.inputs.get("name")): entry for entry in entries if entry.type == REQUEST}
    nodes = {str(entry.inputs.get("name")): entry for entry in entries if entry.type == NODE}
    for name in sorted({*requests, *nodes}):
        machine_entries = [entry for entry in (nodes.get(name), requests.get(name)) if entry is not None]
        declared.machines.append(_machine(name, machine_entries))
    for entry in entries:
        _note(declared, entry)
    for name in declared.released & declared.services.keys():
        # It was declared with the traffic of before the move.
        declared.services[name] = {**declared.services[name], "traffics": []}
    for where in list(declared.grants):
        if where.startswith("b/"):
            declared.buckets.setdefault(where, None)
        elif "/secrets/" in where and where not in declared.secrets:
            declared.secrets.append(where)
    return declared


def _note(declared: Declared, entry: Entry) -> None:
    inputs, name = entry.inputs, name_of(entry)
    if entry.type in GRANTS:
        declared.grants[name].add(grant_of(inputs))
    elif entry.type == MINIMUM:
        entries = inputs.get("entries") or ()
        declared.minima[str(inputs.get("service"))] = frozenset(int(each[2]) for each in entries)
    elif entry.type == SWITCH:
        _note_switch(declared, entry)
    elif entry.type == ACCOUNT:
        email = str(entry.outputs.get("email") or inputs.get("email") or entry.id.rpartition("/")[2])
        if _EMAIL.fullmatch(email):
            declared.accounts[f"projects/{_project(entry)}/serviceAccounts/{email}"] = email
    elif entry.type == REPOSITORY:
        scanner = entry.outputs.get("vulnerabilityScanningConfig") or inputs.get("vulnerabilityScanningConfig") or {}
        declared.repositories[name] = {**inputs, "vulnerabilityScanningConfig": scanner}
    else:
        _note_plain(declared, entry.type, name, inputs)


def _note_switch(declared: Declared, entry: Entry) -> None:
    service = str(entry.inputs.get("service"))
    declared.ended[service] = str(entry.outputs.get("ended") or "")
    if entry.inputs.get("newest"):
        declared.released.add(service)
    else:
        revision = entry.outputs.get("revision") or entry.inputs.get("revision") or ""
        declared.switched[service] = str(revision).rpartition("/")[2]


def _note_plain(declared: Declared, type_: str, name: str, inputs: Mapping[str, Any]) -> None:
    """Note a resource that is known by its name, or by its name and inputs."""
    with_inputs: dict[str, dict[str, Any]] = {
        SERVICE: declared.services, BUCKET: declared.buckets, FIREWALL: declared.firewalls,
        SUBNETWORK: declared.subnetworks,
    }  # fmt: skip
    if type_ in with_inputs:
        with_inputs[type_][name] = inputs
    elif type_ == NETWORK and name not in declared.networks:
        declared.networks.append(name)
    elif type_ in {JOB, NAT}:
        (declared.jobs if type_ == JOB else declared.nats).add(name)


def name_of(entry: Entry) -> str:
    """Name of a resource, or of what a grant is a grant on, "" where its inputs do not say."""
    template = _NAMES.get(entry.type) or GRANTS.get(entry.type)
    if template is None:
        return ""
    values = {"project": _project(entry), **{key: str(value) for key, value in entry.inputs.items()}}
    try:
        name = template.format_map(values)
    except KeyError:
        return ""
    # An input may be a full path, as a bucket's or a secret's output is.
    prefix, _, last = name.rpartition("/projects/")
    return f"projects/{last}" if prefix else name


def grant_of(inputs: Mapping[str, Any]) -> Grant:
    """The grant that these inputs declare."""
    condition = inputs.get("condition")
    expression = condition.get("expression") if isinstance(condition, Mapping) else ""
    return Grant(str(inputs.get("role") or ""), str(inputs.get("member") or ""), str(expression or ""))


def _project(entry: Entry) -> str:
    if project := entry.inputs.get("project") or entry.outputs.get("project"):
        return str(project)
    match = re.search(r"projects/([^/]+)", entry.id)
    return match[1] if match else ""


def _machine(name: str, entries: Sequence[Entry]) -> Machine:
    first = entries[0]
    zones: list[str] = [str(entry.outputs["zone"]) for entry in entries if entry.outputs.get("zone")]
    for entry in entries:
        listed = (*(entry.inputs.get("zones") or ()), *(entry.outputs.get("former_zones") or ()))
        zones += [str(zone["zone"] if isinstance(zone, Mapping) else zone) for zone in listed]
    inputs = first.inputs
    return Machine(
        str(inputs.get("project") or ""),
        name,
        str(inputs.get("back_end") or ""),
        tuple(dict.fromkeys(zones)),
        inputs.get("body") or {},
        tuple(str(each) for entry in entries for each in (entry.inputs.get("subnetworks") or {}).values()),
    )
