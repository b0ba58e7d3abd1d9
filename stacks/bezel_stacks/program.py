"""The program: settings become a plan, the plan becomes resources, the resources give the outputs.

`__main__.py` of a project calls `run`. Leaves out the meaning of settings (bezel.planner), and resources (`dispatch`).
"""

import gc
import sys

_THRESHOLD = 100_000
"""Loading modules leaves hardly any garbage, and collecting it takes a sixth of the time until there is a plan."""


def run() -> None:
    """Deploy the stack that the engine names, and export its outputs.

    Raises:
        SystemExit: The stack file has problems, or a resource cannot be declared; the engine has shown why.
    """
    gc.set_threshold(_THRESHOLD)
    # Late, so that the threshold holds for them.
    from datetime import UTC, datetime
    from pathlib import Path

    import pulumi

    from bezel.planner import make_plan
    from bezel_base.errors import UserError
    from bezel_base.process_end import skip_last_collection
    from bezel_catalog.project_models import read_project_models
    from bezel_services.environment import google_project
    from bezel_stacks import config
    from bezel_stacks.dispatch import deploy

    skip_last_collection()
    try:
        stack = pulumi.get_stack()
        config.check_stack_file(stack, Path.cwd(), pulumi.get_project())
        today, models = datetime.now(UTC).date(), read_project_models(Path.cwd())
        plan = make_plan(config.settings(), project=google_project(), stack=stack, today=today, models=models)
        for name, value in deploy(plan).items():
            pulumi.export(name, value)
    except (UserError, pulumi.RunError) as error:
        pulumi.log.error(str(error))
        sys.exit(32)  # for the engine: the error has been shown, so it adds nothing
