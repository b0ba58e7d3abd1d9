"""Start, stop and restart of the container on a stack's leased machines, in two steps.

The machines do it by themselves, asked by their metadata: no port is opened and no key is made. A stopped container
costs as much as a running one, since a lease is billed as long as its machine exists. Nothing of it is in the stack's
state, and the next deploy changes nothing of it; a reboot of the machine starts the container. Leaves out services of
Cloud Run (`restart`, `scale`).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from bezel.engine.locks.held import HeldLock
from bezel.leases.inventory import new_client
from bezel.leases.state.container import Action
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack, Wait
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, plain_all
from bezel.operations.changes.stack_lock import CancelledError, check_cancelled, under_lock, wait_of
from bezel.operations.container.machines import LeasedMachine, machines_of
from bezel.operations.container.request import RequestFailedError, carry_out
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import price_of
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.metrics.metrics import read_samples
from bezel.operations.serving.server import DeployedServer
from bezel.operations.tpu.records import NODE_TYPE, TYPES, Name
from bezel.operations.tpu.stopping import stopping_clock, stopping_show
from bezel.operations.vllm_metrics.sample import RUNNING, WAITING
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import resources_in, stack_cost
from bezel.rest import RestError
from bezel_base.errors import UserError, one_line
from bezel_base.text.shell import shell_word

_MACHINES = "the machines and their containers"
_METRICS_SECONDS = 5.0
_PAST = {"start": "started", "stop": "stopped", "restart": "restarted"}


class ContainerArguments(Arguments):
    """What to do to which machine."""

    action: Annotated[Action, Reach.INSIDE] = Field(description="what to do, unless it is so already")
    stack: Stack
    lease: Annotated[Name | None, Reach.INSIDE, Option("NAME")] = Field(
        None, description="only the machine of this lease (default: all, one after the other)"
    )
    wait: Wait = "15m"


def plan_container(context: Context, arguments: ContainerArguments) -> Plan:
    """Plan a start, stop or restart of the containers of a stack's machines.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: It leases no machine, or one of them takes no request; holds every problem.
        RestError: A machine could not be read.
    """
    wait_of(arguments.wait)
    deployment = context.deployment(arguments.stack)
    with new_client(context.clock) as client:
        machines = machines_of(client, deployment, arguments.lease)
    chosen = _machines_to_change(machines, arguments.action)
    interrupted = [machine for machine in chosen if arguments.action != "start" and machine.report.runs]
    cost = stack_cost(resources_in(deployment.resources))
    target = arguments.lease or arguments.stack
    return Plan(
        operation="container",
        target=target,
        summary=_summary(machines, chosen, arguments.action),
        arguments=arguments.model_dump(mode="json"),
        changes=tuple(map(_change, chosen)),
        price=price_line(cost, cost),
        price_before=price_of(cost),
        price_after=price_of(cost),
        lost=plain_all(f"{machine.place}: the requests under way" for machine in interrupted),
        warnings=plain_all(_warnings(context, deployment, machines, interrupted, arguments.action)),
        confirm_name=target if arguments.action == "stop" and chosen else None,
        basis=_basis(context, machines),
        is_empty=not chosen,
    )


def apply_container(context: Context, plan: Plan) -> Outcome:
    """Ask the planned machines, one after the other, and wait for each; the first that fails ends it.

    Raises:
        ChangedError: A machine or its container has changed since; nothing was done.
        LockedError: Another run works on the stack.
        CancelledError: The caller gave up before a machine was asked.
        UserError: A machine takes no request any more.
        RestError: A machine could not be read.
    """
    arguments = ContainerArguments.model_validate(plan.arguments)

    def step(_: HeldLock | None) -> Outcome:
        deployment = context.deployment(arguments.stack)
        with new_client(context.clock) as client:
            machines = machines_of(client, deployment, arguments.lease)
            check(plan, _basis(context, machines))
            if plan.is_empty:
                return Outcome(operation=plan.operation, target=plan.target, verdict="unchanged", price=plan.price)
            check_cancelled(context)
            return _carried_out(context, plan, _machines_to_change(machines, arguments.action), arguments)

    check_place(context, plan)
    return under_lock(context, arguments.stack, wait_of(arguments.wait), step)


def _carried_out(
    context: Context, plan: Plan, machines: Sequence[LeasedMachine], arguments: ContainerArguments
) -> Outcome:
    clock, show = stopping_clock(context), stopping_show(context)
    done: list[LeasedMachine] = []
    details: list[str] = []
    problems: list[str] = []
    cancelled = False
    for machine in machines:
        try:
            report = carry_out(machine, arguments.action, clock, show)
        except CancelledError:
            cancelled = True
            problems.append(f"{machine.place}: cancelled; the machine does what it was asked for nevertheless")
            break
        except (RequestFailedError, RestError) as error:
            problems.append(f"{machine.place}: {_PAST[arguments.action]} it was not: {one_line(error)}")
            break
        done.append(machine)
        details.append(f"{machine.place}: {_PAST[arguments.action]}; {report.line}")
    if left := [machine.place for machine in machines[len(done) + 1 :]]:
        problems.append(f"not asked: {', '.join(left)}")
    if arguments.action == "stop" and done:
        option = f" --lease {shell_word(arguments.lease)}" if arguments.lease else ""
        details.append(f"`bezel container start {shell_word(arguments.stack)}{option}` starts it again")
    return Outcome(
        operation=plan.operation,
        target=plan.target,
        verdict="cancelled" if cancelled else "failed" if problems else "done",
        changes=tuple(map(_change, done)),
        price=plan.price,
        details=plain_all(details),
        problems=plain_all(problems),
    )


def _machines_to_change(machines: Sequence[LeasedMachine], action: Action) -> list[LeasedMachine]:
    """The machines whose container is not so already."""
    if action == "restart":
        return list(machines)
    return [machine for machine in machines if machine.report.runs == (action == "stop")]


def _change(machine: LeasedMachine) -> PlannedChange:
    type_ = TYPES["flex_start_vm"] if machine.lease.kind == "flex_start_vm" else NODE_TYPE
    return PlannedChange(op="update", name=machine.place, type=type_, properties=("metadata.bezel-container",))


def _summary(machines: Sequence[LeasedMachine], chosen: Sequence[LeasedMachine], action: Action) -> str:
    shown = ", ".join(f"{machine.place} ({machine.report.line})" for machine in chosen or machines)
    return f"{action} the container of {shown}" if chosen else f"nothing to {action}: {shown}"


def _warnings(
    context: Context,
    deployment: Deployment,
    machines: Sequence[LeasedMachine],
    interrupted: Sequence[LeasedMachine],
    action: Action,
) -> Iterator[str]:
    if action == "stop":
        for machine in machines:
            yield f"{machine.place} is billed as before while it is stopped: {machine.price_line}"
        yield f"`pulumi destroy --stack {shell_word(deployment.stack)}` ends the lease and its cost"
    if not interrupted:
        return
    serving = [machine for machine in machines if machine.report.is_healthy]
    is_all = action == "stop" and all(machine in interrupted for machine in serving)
    if deployment.url and len(machines) == len(deployment.leases) and (is_all or len(machines) == 1):
        until = "until it is started" if action == "stop" else "while the model is loaded again"
        yield f"callers of {deployment.url} get 503 {until}"
    if len(deployment.leases) == 1:
        yield _use(context, deployment)


def _use(context: Context, deployment: Deployment) -> str:
    """Who uses the server at this moment."""
    try:
        with DeployedServer(context, deployment) as server:
            (sample,) = read_samples(server, reads=1, seconds=_METRICS_SECONDS)
    except (UserError, RestError) as error:
        return f"how many requests the server works on is unknown: {one_line(error)}"
    running, waiting = sample.get(RUNNING), sample.get(WAITING)
    if running is None or waiting is None:
        return "how many requests the server works on is unknown: it does not report it"
    return f"the server works on {running:g} requests now, and {waiting:g} wait"


def _basis(context: Context, machines: Sequence[LeasedMachine]) -> dict[str, str]:
    states = ", ".join(f"{machine.lease.id} {machine.report.runs}" for machine in machines)
    return {**place_of(context), _MACHINES: states}
