"""Stacks that a check-up looks at where none is named: the deployed ones, else those that the pipeline deploys.

A stack file that is neither is an example, which may lack a price, a quota or weights.
"""

from bezel.engine.project.pipeline_file import FILE, pipeline_of
from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, check, of_error
from bezel_base.errors import UserError
from bezel_base.text.shell import shell_word


def chosen_stacks(context: Context) -> tuple[tuple[str, ...], list[Check]]:
    """The stacks to check, and the outcomes of choosing them: of `bezel.toml`, and of stacks whose files are gone."""
    checks: list[Check] = []
    files = context.project.stacks()
    try:
        deployed = context.stacks()
    except UserError:
        deployed = []  # the check of the backend reports why
    for stack in sorted(set(deployed) - set(files)):
        repair = f"restore the file, or `bezel destroy {shell_word(stack)}` with the commit that has it."
        checks.append(check("stack files", stack, "warning", f"it is deployed, and has no Pulumi.{stack}.yaml", repair))
    try:
        pipeline = pipeline_of(context.project)
    except UserError as error:
        checks += of_error("stack files", FILE, error, "problem")
        named = files
    else:
        named = [stack for stack in files if stack in pipeline.stacks]
        if pipeline.is_declared:
            checks.append(check("stack files", FILE, "ok", f"it names {', '.join(named) or 'no stack'}"))
    if chosen := tuple(stack for stack in files if stack in deployed):
        context.show(f"checks the deployed stacks ({', '.join(chosen)}); any other one: `bezel doctor STACK`")
        return chosen, checks
    context.show("no stack is deployed: checks those that the pipeline deploys; any other one: `bezel doctor STACK`")
    return tuple(named), checks
