"""Other projects on the same localcloud: whose stacks hold the resources that a stack would create under their names.

Names in Google Cloud come from the stack's name, so two projects with a stack of one name meet in the same cloud. The
engine would notice it midway, at the first resource that exists. Leaves out resources of stacks of this project.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.engine.state.folder import states_in
from bezel.planner import LeasePlan
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from bezel.planner import AnyPlan


def check_neighbours(state: Path, project: str, plan: "AnyPlan") -> None:
    """Refuse a stack whose resources another project of the same localcloud has.

    Args:
        state: The folder of the file backend.
        project: The name of the project that has the stack.
        plan: The plan of the stack.

    Raises:
        UserError: Another project has them, with its name and the repair.
    """
    wanted = planned_ids(plan)
    for other, stack, ids in _other_stacks(state, project):
        if not (shared := sorted(wanted & ids)):
            continue
        consequence = (
            f"the project {other} has its stack {stack} on this localcloud, with the same names in Google Cloud: "
            f"{', '.join(shared)}. Nothing was changed."
        )
        repair = (
            f"copy the stack to another name: `.venv/bin/bezel new stack NAME --from {shell_word(plan.stack)}`. "
            "Or use a localcloud of the project's own: leave out --dir, or name another folder."
        )
        raise UserError(Problem(f"stack {plan.stack}", None, consequence, repair))


def planned_ids(plan: "AnyPlan") -> frozenset[str]:
    """Ids of the services and of the server's account, as the engine's state has them."""
    if isinstance(plan, LeasePlan):
        services, account = [(plan.gateway.region, plan.gateway.name)], plan.service_account_id
    else:
        services = [(each.region, plan.service.name) for each in plan.regions]
        account = plan.service.service_account_id
    place = f"projects/{plan.project}"
    return frozenset(
        (
            *(f"{place}/locations/{region}/services/{name}" for region, name in services),
            f"{place}/serviceAccounts/{account}@{plan.project}.iam.gserviceaccount.com",
        )
    )


def _other_stacks(state: Path, project: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Project, stack and ids of resources of every other project's stacks; a state that cannot be read is left out."""
    for other, stack, latest in states_in(state):
        if other != project:
            yield other, stack, frozenset(_ids(latest.get("resources") or ()))


def _ids(resources: Iterable[dict[str, object]]) -> Iterator[str]:
    return (str(item["id"]) for item in resources if item.get("id"))
