"""Request of a lease by an operator, from its arguments: every problem at once, and the network of each zone.

Owns the arguments and the body. Leaves out what is there already, the plan and the request itself (`create_lease`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from bezel.leases.inputs import problems_of
from bezel.leases.names import BY_HAND, labels
from bezel.leases.requests import BackEndName, LeaseSpec, ProvisioningModel, ZoneChoice, instance_body, queued_body
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Project, Zone
from bezel.operations.tpu.records import Name
from bezel.planner.base.hardware import LeasedHardware, find_leased_hardware, leased_hardware
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import Problem, UserError
from bezel_catalog.quantities import parse_duration

_MODEL: ProvisioningModel = "FLEX_START"
_MOST_ZONES = 30
_NETWORK = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"


class CreateArguments(Arguments):
    """What is requested."""

    name: Annotated[Name, Reach.BEYOND] = Field(description="name of the lease and of its machine")
    hardware: Annotated[str, Reach.BEYOND, Option("ID")] = Field(
        max_length=40, description="a TPU slice, e.g. v6e-4, or a machine with GPUs of the catalogue"
    )
    zone: Annotated[tuple[Zone, ...], Reach.BEYOND, Option("ZONE")] = Field(
        min_length=1, max_length=_MOST_ZONES, description="zones, best first: the first that takes the request has it"
    )
    network: Annotated[str, Reach.BEYOND, Option("NAME")] = Field(
        pattern=_NETWORK,
        description="its network, with a subnetwork in the zone's region",
        examples=["default"],
    )
    subnetwork: Annotated[str | None, Reach.BEYOND, Option("NAME")] = Field(
        None,
        pattern=_NETWORK,
        description="which subnetwork, where the network has several in a region",
        examples=["default"],
    )
    service_account: Annotated[str, Reach.BEYOND, Option("EMAIL")] = Field(
        pattern=r"^[a-z0-9-]{1,63}@[a-z0-9.-]{1,200}$",
        description="e-mail of the service account that it runs as",
        examples=["vllm-run@my-project.iam.gserviceaccount.com"],
    )
    duration: Annotated[str, Reach.BEYOND, Option("TIME")] = Field(
        "4h", max_length=20, description="longest run duration, 10m to 7d; then Google deletes it"
    )
    patience: Annotated[str, Reach.BEYOND, Option("TIME")] = Field(
        "2h", max_length=20, description="longest wait for capacity"
    )
    project: Project = None


@dataclass(frozen=True)
class LeaseRequest:
    """A request, its hardware, and the longest run duration in seconds."""

    spec: LeaseSpec
    hardware: LeasedHardware
    run_seconds: int


def request_of(client: GoogleClient, project: str, arguments: CreateArguments) -> LeaseRequest:
    """The request that the arguments describe.

    Args:
        client: Client for Google's APIs.
        project: The project's id.
        arguments: What is requested.

    Raises:
        UserError: It cannot be sent; holds every problem.
        RestError: The network could not be read.
    """
    hardware = find_leased_hardware(arguments.hardware)
    problems: list[Problem] = []
    if hardware is None:
        choices = ", ".join(leased_hardware())
        problems.append(
            Problem("--hardware", arguments.hardware, "the catalogue has none of that name.", f"choose of {choices}.")
        )
    run, patience = (_seconds(arguments, option, problems) for option in ("duration", "patience"))
    zones = tuple(dict.fromkeys(arguments.zone))
    subnetworks = _subnetworks(client, project, arguments, zones, problems)
    if hardware is None or problems:
        raise UserError(*problems, title=f"The lease {arguments.name} cannot be requested")
    back_end: BackEndName = hardware.back_ends[0]
    spec = LeaseSpec(
        project=project,
        name=arguments.name,
        stack=BY_HAND,
        back_end=back_end,
        zones=tuple(ZoneChoice(zone, float(patience)) for zone in zones),
        subnetworks=subnetworks,
        body=_body(arguments, hardware, back_end, run, f"projects/{project}/global/networks/{arguments.network}"),
    )
    values = {
        "name": spec.name,
        "back_end": back_end,
        "run_seconds": run,
        "zones": [{"zone": choice.zone, "patience_seconds": choice.patience_seconds} for choice in spec.zones],
        "subnetworks": subnetworks,
        "body": spec.body,
    }
    options = {"run_seconds": "--duration", "zones": "--patience"}
    if wrong := problems_of(values):
        raise UserError(*(Problem(options.get(key, key), None, text, "") for key, text in wrong))
    return LeaseRequest(spec, hardware, run)


def _body(
    arguments: CreateArguments, hardware: LeasedHardware, back_end: BackEndName, run: int, network: str
) -> dict[str, object]:
    lease_labels = labels(arguments.name, BY_HAND)
    if back_end == "queued_resource" and hardware.slice is not None:
        return queued_body(
            arguments.name,
            accelerator_type=hardware.slice.id,
            runtime_version=hardware.slice.runtime_version,
            network=network,
            labels=lease_labels,
            metadata={},
            service_account=arguments.service_account,
            provisioning_model=_MODEL,
            run_seconds=run,
        )
    return instance_body(
        machine_type=hardware.machine_type,
        source_image=hardware.machine_image,
        disk_type=hardware.disk_type,
        labels=lease_labels,
        metadata={},
        service_account=arguments.service_account,
        provisioning_model=_MODEL,
        run_seconds=run,
    )


def _seconds(arguments: CreateArguments, option: str, problems: list[Problem]) -> int:
    text = str(getattr(arguments, option))
    seconds = parse_duration(text)
    if not seconds:
        problems.append(Problem(f"--{option}", text, "expected a duration above 0.", "write e.g. 30m or 4h."))
    return seconds or 0


def _subnetworks(
    client: GoogleClient, project: str, arguments: CreateArguments, zones: Sequence[str], problems: list[Problem]
) -> dict[str, str]:
    """Region -> the subnetwork of the named network there; a region without one, or with several, is a problem."""
    subnetworks: dict[str, str] = {}
    wanted, suffix = arguments.subnetwork, f"projects/{project}/global/networks/{arguments.network}"
    for region in dict.fromkeys(zone.rpartition("-")[0] for zone in zones):
        path = f"projects/{project}/regions/{region}/subnetworks"
        try:
            listed = list(client.pages(f"{endpoint('COMPUTE')}{path}", "items"))
        except ApiError as error:
            problems.append(Problem("--zone", region, f"its networks cannot be read: {error.because}", "check it."))
            continue
        names = [str(each["name"]) for each in listed if str(each.get("network") or "").endswith(suffix)]
        chosen = [name for name in names if wanted in (None, name)]
        if len(chosen) == 1:
            subnetworks[region] = f"{path}/{chosen[0]}"
        else:
            there = f"{region} has {', '.join(names) or 'no subnetwork'} of it."
            repair = "name one with --subnetwork." if names else "choose another network or other zones."
            problems.append(Problem("--network", arguments.network, there, repair))
    return subnetworks
