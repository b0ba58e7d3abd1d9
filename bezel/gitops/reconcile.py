"""Reconciliation of a stack on any backend after a run of the engine whose changes have an unknown outcome.

To be called under the stack's lock, or by the run itself. Leaves out how an outcome is found (bezel.pulumi_engine).
"""

from collections.abc import Callable, Sequence

from bezel.console import note
from bezel.gitops.engine_runs import Engine
from bezel.pulumi_engine.event_log import Change
from bezel.pulumi_engine.recover import SECONDS, Recovered, recover
from bezel.pulumi_engine.runs import end_processes


def reconcile(
    engine: Engine, mark: str, changes: Sequence[Change] = (), show: Callable[[str], None] = note
) -> Recovered:
    """Reconcile the operations that a killed engine left pending, and other changes whose outcome is unknown.

    Args:
        engine: The stack's engine.
        mark: Marks the processes of the ended runs; none with it may be of a living one.
        changes: Changes besides the pending operations of the state.
        show: Gets each line of progress.

    Raises:
        UserError: A resource's id does not follow from its inputs, or the engine failed.
    """
    # Plugins live on where the guard was killed as well, and may still be creating what is looked for.
    if count := end_processes(mark):
        show(f"ended {count} processes of an ended run")

    def pulumi(arguments: Sequence[str]) -> str:
        if arguments[0] != "refresh":
            return engine.printed(*arguments)
        show(f"  reading the open resources from the cloud: at most {SECONDS // 60} minutes")
        return engine.printed(*arguments, "--config-file", str(engine.config_file), seconds=SECONDS)

    return recover(pulumi, engine.project.cloud_project(engine.stack, engine.environment), show, changes)
