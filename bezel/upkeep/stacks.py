"""Stacks of a project in the engine's backend, deployed or empty. Leaves out their contents."""

import os
from collections.abc import Mapping

from bezel.engine.project.project import Project
from bezel.engine.run.command import CommandError, command_output, pulumi_cli
from bezel_base.json_documents import read_json

_SECONDS = 120.0


def stacks_in_backend(project: Project, environment: Mapping[str, str] = os.environ) -> dict[str, int | None]:
    """Name -> number of resources, None if the backend does not say, of each of the project's stacks.

    Raises:
        CommandError: The backend cannot be read.
    """
    command = [pulumi_cli(), "stack", "ls", "--json"]
    text = command_output(command, folder=project.folder, seconds=_SECONDS, environment=environment)
    try:
        counts = {str(row["name"]).rpartition("/")[2]: row.get("resourceCount") for row in read_json(text)}
    except (ValueError, KeyError, TypeError):
        raise CommandError("the backend's list of stacks cannot be parsed") from None
    return {name: count if isinstance(count, int) else None for name, count in sorted(counts.items())}
