"""Models of a project beside those of the catalogue: rows of the file `catalog.toml` in the project's folder.

A row holds what a model's own files say (configuration, generation defaults) and what its tensors weigh, with their
source and commit, so that a plan needs no network. Leaves reading those files to bezel.model_sources.
"""

from bezel_catalog.project_models.reading import FILE, read_project_models
from bezel_catalog.project_models.row import ModelRow, model_of, row_id

__all__ = ["FILE", "ModelRow", "model_of", "read_project_models", "row_id"]
