"""Import file of a stack that adopts what exists: the names are those of the program, as a preview plans them.

Asks the engine what the stack would create, and changes nothing: neither the state nor the cloud. Leaves out which of
it exists already (`bezel.conversion.adoption`) and the import itself, which is Pulumi's own command.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bezel.conversion.adoption import adopted_ids, adoption_commands, import_document
from bezel.conversion.conversion import Conversion
from bezel.engine.run.stack import stack_engine
from bezel.operations.changes.plan import plain_all
from bezel.operations.changes.stack_runs import check_run, quiet
from bezel.operations.context import Context
from bezel_base.atomic_write import write_whole
from bezel_base.errors import UserError


@dataclass(frozen=True, slots=True)
class Adoption:
    """How a stack adopts what exists.

    Attributes:
        file: The import file, in the project's folder.
        ids: Ids of what it imports, the service's first.
        commands: To be run in the project's folder, in order; a deploy then updates what they imported.
    """

    file: Path
    ids: tuple[str, ...]
    commands: tuple[str, ...]


def write_adoption(context: Context, conversion: Conversion) -> Adoption | None:
    """Write the import file of a stack; None where there is nothing to adopt.

    Args:
        context: The context; its project has the stack's file.
        conversion: What was found, and its plan.

    Raises:
        UserError: The stack cannot be previewed, or it has adopted the service already.
    """
    if conversion.plan is None:
        return None
    ids = adopted_ids(conversion.converted.server, conversion.plan)
    if not ids:
        return None
    stack = conversion.stack
    with tempfile.TemporaryDirectory(prefix="bezel-adoption-") as folder:
        created = Path(folder) / "created.json"
        with stack_engine(context.project, stack, context.environ) as prepared:
            context.show(f"previewing {stack}")
            run = quiet(context, prepared.engine).run("preview", options=(f"--import-file={created}",))
        check_run(run)
        if not run.ok:
            raise UserError(*plain_all(run.errors), title=f"The preview of {stack} failed")
        document = import_document(json.loads(created.read_text(encoding="utf-8")), ids)
    file = context.folder / f"import-{stack}.json"
    write_whole(file, json.dumps(document, indent=2) + "\n")
    imported = tuple(str(each["id"]) for each in document["resources"] if "id" in each)
    return Adoption(file, imported, adoption_commands(stack, file.name))
