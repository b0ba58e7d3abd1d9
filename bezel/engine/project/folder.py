"""Folder of the Pulumi project around another folder; apart from `project`, which takes half a second to import."""

from pathlib import Path

PROJECT_FILE = "Pulumi.yaml"


def project_folder(start: Path) -> Path | None:
    """The folder itself or the nearest one above it that has a Pulumi.yaml."""
    return next((folder for folder in (start, *start.parents) if (folder / PROJECT_FILE).is_file()), None)
