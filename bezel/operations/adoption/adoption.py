"""Import file of a stack that adopts what exists: the names are those of the program, as a preview plans them.

Asks Cloud Run for the stack's service and the engine what the stack would create, and changes nothing: neither the
state nor the cloud. Leaves out which of it exists already (`bezel.conversion.adoption`) and the import itself, which is
Pulumi's own command.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bezel.conversion.adoption import adopted_ids, adoption_commands, import_document
from bezel.conversion.sources import read_live_service
from bezel.engine.project.own_program import check_settings
from bezel.engine.run.stack import PROVIDER, stack_engine
from bezel.operations.changes.plan import plain_all
from bezel.operations.changes.stack_runs import check_run, quiet
from bezel.operations.context import Context
from bezel.planner import Plan, make_plan
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError


@dataclass(frozen=True, slots=True)
class Adoption:
    """How a stack adopts what exists.

    Attributes:
        file: The import file, in the project's folder.
        ids: Ids of what it imports, the service's first.
        commands: To be run in the project's folder, in order; the last one updates what the others imported.
    """

    file: Path
    ids: tuple[str, ...]
    commands: tuple[str, ...]


def write_adoption(context: Context, stack: str) -> Adoption:
    """Write the import file of a stack.

    Args:
        context: The context; its project has the stack's file.
        stack: Name of the stack.

    Raises:
        PlanError: The stack cannot be planned.
        UserError: There is no such service, the stack cannot be previewed, or it has adopted the service already.
        RestError: Cloud Run could not be asked.
    """
    project = context.cloud_project(stack)
    check_settings(context.project, stack)
    plan = make_plan(
        context.project.configuration(stack), project=project, stack=stack, models=context.project.models()
    )
    if not isinstance(plan, Plan):
        consequence = "it leases machines: a service of Cloud Run is adopted by a stack that deploys one."
        raise UserError(Problem("STACK", stack, consequence, "choose a stack with an accelerator of Cloud Run."))
    name = f"projects/{project}/locations/{plan.service.region}/services/{plan.service.name}"
    endpoint = context.address("CLOUD_RUN_V2")
    server = read_live_service(context.google, endpoint, name, key="bezel:service_name")
    with tempfile.TemporaryDirectory(prefix="bezel-adoption-") as folder:
        created = Path(folder) / "created.json"
        with stack_engine(context.project, stack, context.environ) as prepared:
            context.show(f"previewing {stack}")
            run = quiet(context, prepared.engine).run("preview", options=(f"--import-file={created}",))
            exists = prepared.state is not None
        check_run(run)
        if not run.ok:
            raise UserError(*plain_all(run.errors), title=f"The preview of {stack} failed")
        document = import_document(json.loads(created.read_text(encoding="utf-8")), adopted_ids(server, plan))
    file = context.folder / f"import-{stack}.json"
    write_whole(file, json.dumps(document, indent=2) + "\n")
    imported = tuple(str(each["id"]) for each in document["resources"] if "id" in each)
    provider = context.environ.get(PROVIDER, "")
    return Adoption(file, imported, adoption_commands(stack, file.name, provider=provider, exists=exists))
