"""Model of a hub that a stack names and that has no row: `bezel plan` reads it, and says so.

A preview, a pipeline and the policy packs take only what is in the project's files, so that the same files give the
same plan without a network.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel.model_sources.cached import describe
from bezel.model_sources.places import ModelRefusedError, repository_of
from bezel.model_sources.rows import free_id, row_of
from bezel.operations.catalog.stack_token import stack_token
from bezel_base.text.shell import shell_word
from bezel_catalog.models import catalogue_models
from bezel_catalog.project_models.reading import FILE
from bezel_catalog.project_models.row import model_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.operations.context import Context
    from bezel_catalog import Model


def unwritten_model(context: Context, stack: str, project_models: Mapping[str, Model]) -> tuple[Model, str] | None:
    """Read the model that a stack names by `OWNER/NAME[@REVISION]`, where the project has no row of it.

    Args:
        context: The context.
        stack: The stack's name.
        project_models: The project's models.

    Returns:
        The model, and what was read, for the user; None where the stack names another kind of model, or one with a row.

    Raises:
        UserError: The model cannot be read, or no plan can be made for it.
    """
    name = str(context.project.configuration(stack).get("model") or "").strip()
    if "/" not in name or any(model.is_named(name) for model in project_models.values()):
        return None
    try:
        repository = repository_of(name)
    except ModelRefusedError:
        return None
    if any((model.hub_id or "").lower() == repository.id.lower() for model in catalogue_models().values()):
        return None  # the plan names the catalogue's id
    description = describe(
        f"hf:{name}",  # never a folder of this name
        environ=context.environ,
        token=lambda: stack_token(context, stack),
        show=context.show,
        cancelled=context.cancelled,
    )
    row = row_of(description, free_id(description, project_models), datetime.now(UTC).date())
    text = (
        f"{FILE} has no row of {name}: this plan was made from {description.source}, of which "
        f"{description.read_bytes:,} bytes were read now or before. A preview, a pipeline and the policy packs refuse "
        "the stack until the row is there: "
        f"`bezel catalog add-model {shell_word(name)}`"
    )
    return model_of(row, name), text
