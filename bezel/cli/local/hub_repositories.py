"""Repositories of the embedded hub that a stack needs: its model, where that is of the project, and its adapters.

The hub's stand-in has the models of the catalogue by itself. Others are put there as files of the right layout, whose
weights are made up, so that a server with `weights.loading: hub` and `bezel weights copy` find them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bezel.engine.project.project import Project
from bezel_base.console import say
from bezel_localcloud.core.paths import Paths

if TYPE_CHECKING:
    from bezel.planner import AnyPlan


def put_on_hub(directory: Path, project: Project, plan: "AnyPlan") -> None:
    """Put what a plan names on the hub that a running localcloud has; what is there already stays.

    Args:
        directory: Folder of localcloud.
        project: The project, whose rows describe its models.
        plan: The stack's plan.
    """
    from bezel.weights.hub import Repository
    from bezel_catalog.models import model, using_models
    from bezel_localcloud.services.model_hub.stored import put_repository
    from bezel_simulated_vllm.synthetic_weights import adapter_files, model_files

    paths = Paths(directory)
    with using_models(project.models()):
        row = model(plan.model)
        if (
            row.files is not None
            and row.hub_id
            and put_repository(paths, row.hub_id, model_files(row.id), revisions=(row.commit, row.revision))
        ):
            say(f"put synthetic weights of {row.id} on the embedded hub, as {row.hub_id}")
        for adapter in plan.settings.adapters:
            if adapter.source is None:
                continue
            repository = Repository.of(adapter.source.removeprefix("hf:"))
            files = adapter_files(plan.model, adapter.rank)
            if put_repository(paths, repository.id, files, revisions=(repository.revision,)):
                say(f"put an adapter of zeros on the embedded hub, as {repository.id}")
