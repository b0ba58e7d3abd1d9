"""Machines of a stack's leases as they are now, and why one of them takes no request for its container.

Leaves out the requests themselves (`container`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bezel.leases.backends.interface import BackEnd
from bezel.leases.clock import rfc3339
from bezel.leases.inventory import back_end_of
from bezel.leases.messages import phase_line
from bezel.leases.state.container import ATTRIBUTE, ContainerReport, report_of
from bezel.leases.state.observation import Observation, State, phases_of
from bezel.operations.deployment.deployment import DeployedLease, Deployment
from bezel.operations.redaction import clean_text
from bezel.rest import GoogleClient
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_UP = frozenset({"READY", "RUNNING"})
_COMING = frozenset({State.WAITING, State.PROVISIONING})
_LONGEST = 500


@dataclass(frozen=True)
class LeasedMachine:
    """A leased machine with its container.

    Attributes:
        back_end: The API that leases it.
        lease: It as Google shows it.
        report: Its container as the machine itself last said.
        usd_per_hour: Price of its lease, None if unknown.
    """

    back_end: BackEnd
    lease: Observation
    report: ContainerReport
    usd_per_hour: float | None

    @property
    def place(self) -> str:
        """Zone and name."""
        return f"{self.lease.zone}/{self.lease.name}"

    @property
    def price_line(self) -> str:
        """What it costs until when, whatever its container does."""
        price = "an unknown price" if self.usd_per_hour is None else f"{self.usd_per_hour:.2f} USD/h"
        end = rfc3339(self.lease.ends_at)
        return f"{price} until {end}" if end else f"{price} until it is deleted"


def machines_of(client: GoogleClient, deployment: Deployment, name: str | None) -> list[LeasedMachine]:
    """The machines of a stack, or the one of a lease.

    Args:
        client: A client for Google's APIs.
        deployment: The deployed stack.
        name: Name of the lease, None for every one.

    Raises:
        UserError: The stack has no such lease, or one of them takes no request; holds every problem.
        RestError: A machine could not be read.
    """
    leases = _chosen_leases(deployment, name)
    machines: list[LeasedMachine] = []
    problems: list[Problem] = []
    for lease in leases:
        result = _machine(client, deployment.stack, lease)
        if isinstance(result, LeasedMachine):
            machines.append(result)
        else:
            problems.append(result)
    if problems:
        raise UserError(*problems)
    return machines


def _chosen_leases(deployment: Deployment, name: str | None) -> Sequence[DeployedLease]:
    stack, leases = deployment.stack, deployment.leases
    if not leases:
        consequence = "it leases no machine; Cloud Run starts and stops the containers of a service by itself."
        raise UserError(
            Problem(
                "STACK", stack, consequence, f"`bezel restart {shell_word(stack)}` makes a new revision of a service."
            )
        )
    if name is None:
        return leases
    chosen = [lease for lease in leases if lease.name == name]
    if not chosen:
        listed = ", ".join(lease.name for lease in leases)
        raise UserError(Problem("--lease", name, f"{stack} has no such lease.", f"choose one of {listed}."))
    return chosen


def _machine(client: GoogleClient, stack: str, lease: DeployedLease) -> LeasedMachine | Problem:
    """The machine of a lease; or why it takes no request."""
    back_end = back_end_of(lease.back_end, client, lease.project)
    zones = dict.fromkeys(filter(None, (lease.zone, *lease.zones)))
    seen = [each for zone in zones if (each := back_end.observe(zone, lease.name)).exists and each.belongs_to(stack)]
    observation = next((each for each in seen if each.is_live), next(iter(seen), None))
    if observation is None or observation.state is not State.ACTIVE or observation.node_state not in _UP:
        return _no_machine(stack, lease, observation)
    entries = back_end.guest_attributes(observation.zone, observation.name)
    report = report_of(entries)
    if report is None:
        return _no_report(
            stack, observation, back_end, clean_text(phase_line(phases_of(entries).values(), whole=True), _LONGEST)
        )
    return LeasedMachine(back_end, observation, report, lease.hourly_usd.get(observation.zone))


def _no_machine(stack: str, lease: DeployedLease, observation: Observation | None) -> Problem:
    key = f"lease {lease.name}"
    if observation is None:
        word = "absent from its zones"
    else:
        word = (
            observation.word
            if observation.state is not State.ACTIVE
            else f"{observation.word}, its machine {observation.node_state or '?'}"
        )
    if observation is not None and observation.state in _COMING:
        repair = f"ask again once it serves; `bezel status {shell_word(stack)}` shows its state."
        return Problem(key, clean_text(word, _LONGEST), "it has no machine yet, so there is no container.", repair)
    repair = (
        f"`bezel deploy {shell_word(stack)}` leases another machine if the stack file has `lease: {{renew: true}}`."
    )
    return Problem(key, clean_text(word, _LONGEST), "its machine does not run, so there is no container.", repair)


def _no_report(stack: str, observation: Observation, back_end: BackEnd, phases: str) -> Problem:
    key = f"machine {observation.zone}/{observation.name}"
    script = back_end.attributes(observation.zone, observation.name).get("startup-script", "")
    if ATTRIBUTE not in script:
        consequence = "its startup script is of an earlier release and takes no request for its container."
        return Problem(
            key, None, consequence, f"`bezel deploy {shell_word(stack)}` leases a machine with the present script."
        )
    consequence = f"its boot has not come to its end, so it takes no request: {phases}."
    repair = f"ask again once it serves; `bezel tpu describe {shell_word(observation.name)}` shows the boot."
    return Problem(key, None, consequence, repair)
