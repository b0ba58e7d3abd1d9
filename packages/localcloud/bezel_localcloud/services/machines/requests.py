"""Requests for machines as both APIs store them: their checks, their rows, and what a machine reports.

Leaves out parsing (tpu/requests.py, compute/instance_requests.py) and later states (reconciler.py).
"""

import random
from dataclasses import dataclass, field

from bezel_localcloud.core.errors import ApiError, invalid, permission_denied
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel_localcloud.machines.capacity import FLEXIBLE, Goods, Held, exceeded_quotas, place_of
from bezel_localcloud.machines.lifecycle import model_refused, new_life, over_quota
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.compute.links import region_of
from bezel_localcloud.services.machines.reconciler import KINDS, QUEUED

MODELS = frozenset({"STANDARD", "SPOT", FLEXIBLE})


@dataclass(frozen=True)
class MachineRequest:
    """A parsed request for a machine.

    Attributes:
        name: Full name of the machine: a node or an instance.
        zone: Its zone.
        goods: The kind of machine.
        model: STANDARD, SPOT or FLEX_START.
        run_seconds: Longest run in seconds; None for no limit.
        valid_seconds: Longest wait for capacity in seconds of the platform's time; None for no limit, 0 for no wait.
        network: `projects/P/global/networks/N`, "" where only a subnetwork is named.
        subnetwork: `projects/P/regions/R/subnetworks/S`, "" where only a network is named.
        external: Whether it has an external address.
        service_account: E-mail, "default" for the project's own, "" for none.
        metadata: Its attributes.
        tags: Its network tags.
    """

    name: str
    zone: str
    goods: Goods
    model: str
    run_seconds: float | None
    valid_seconds: float | None
    network: str
    subnetwork: str
    external: bool
    service_account: str
    metadata: dict[str, str] = field(repr=False)
    tags: list[str]


def new_row(call: Call, request: MachineRequest, body: Json) -> Json:
    """Check a request against the project and return its row, not stored yet.

    Raises:
        ApiError: The zone refuses the provisioning model, or network, subnetwork or account do not exist, do not fit
            or may not be used by the caller.
    """
    if request.model == FLEXIBLE and not call.cloud.machines.accepts_flex_start(request.zone):
        raise model_refused(request.zone)
    subnetwork = _subnetwork(call, request)
    account = DEFAULT_COMPUTE_ACCOUNT if request.service_account == "default" else request.service_account
    if account:
        call.act_as(account)
    return {
        "request": body,
        "zone": request.zone,
        "goods": request.goods.name,
        "goods_type": request.goods.machine_type,
        "topology": request.goods.topology,
        "model": request.model,
        "number": str(random.getrandbits(62)),
        "said": "",
        "operation": "",
        "machine": {
            "name": request.name,
            "metadata": request.metadata,
            "service_account": account,
            "subnetwork": subnetwork,
            "external": request.external,
            "tags": request.tags,
        },
    }


def begin(call: Call, kind: str, name: str, request: MachineRequest, row: Json, metadata: Json) -> str:
    """Store a request and return its operation, "" where it begins late.

    Raises:
        ApiError: The request exceeds a quota.
    """
    cloud, now = call.cloud, call.cloud.pace.now()
    machine = Held(KINDS[kind], request.zone, request.goods.name, request.model, "CREATING")
    for quota, used, allowed in exceeded_quotas(
        machine, cloud.machines.held_machines(), cloud.machines.quotas(place_of(machine))
    ):
        place = f"{'zone' if kind == QUEUED else 'region'} {place_of(machine)}"
        error = over_quota(quota, used, allowed, place)
        refused = ApiError("PERMISSION_DENIED", error.message, error.details, reason="quotaExceeded")
        raise error if kind == QUEUED else refused
    late = cloud.faults.find("lease-late-fill")
    if late:
        now += cloud.pace.seconds(late.number("seconds"))
    valid = request.valid_seconds
    row["life"] = new_life(now, now + cloud.pace.seconds(valid) if valid else valid, request.run_seconds).as_json()
    if late:
        cloud.machines.begin_late(kind, name, row)
        return ""
    row["operation"] = cloud.operations.begin(name.rsplit("/", 2)[0], metadata)
    cloud.machines.begin(kind, name, row)
    return str(row["operation"])


def guest_attributes(call: Call, machine: str, path: str) -> list[Json]:
    """Guest attributes that a machine wrote: of `namespace/`, one `namespace/key`, or all for ""."""
    chosen = [
        (key.partition("/"), value)
        for key, value in sorted(call.cloud.nodes.guest_attributes(machine).items())
        if key == path or not path or (path.endswith("/") and key.startswith(path))
    ]
    return [{"namespace": namespace, "key": key, "value": value} for (namespace, _, key), value in chosen]


def _subnetwork(call: Call, request: MachineRequest) -> str:
    """Full name of a machine's subnetwork: the requested one, or the network's in the machine's region."""
    store, network, subnetwork = call.cloud.store, request.network, request.subnetwork
    region = request.zone.rpartition("-")[0]
    if not subnetwork:
        network = network or f"projects/{PROJECT}/global/networks/default"
        here = store.rows("subnetwork", f"projects/{PROJECT}/regions/{region}/subnetworks/")
        subnetwork = next((name for name, body in here if body["network"] == network), "")
        if not subnetwork:
            missing = network if store.get("network", network) is None else f"{network} (a subnetwork in {region})"
            raise ApiError("NOT_FOUND", f"The resource '{missing}' was not found")
    row = call.row_of("subnetwork", subnetwork, f"The resource '{subnetwork}' was not found")
    if region_of(subnetwork) != region or network not in {"", row["network"]}:
        text = f"The subnetwork '{subnetwork}' is not in region {region} of network '{network or row['network']}'."
        raise invalid(text, ("subnetwork", "does not fit zone and network"))
    if not call.cloud.access.allows(call.caller, "compute.subnetworks.use", f"projects/{PROJECT}"):
        raise permission_denied("compute.subnetworks.use", subnetwork)
    return subnetwork
