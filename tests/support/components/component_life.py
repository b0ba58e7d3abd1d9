"""A project with a program of components, deployed by the real engine on a localcloud of its own."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from tests.support.e2e import warm_localcloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_localcloud.core.json_types import Json

ROOT = Path(__file__).parents[3]


@contextmanager
def life_of(folder: Path, project: str, program: str) -> Iterator[tuple[LocalEngine, control.Endpoint]]:
    """The engine of a new project with one stack, `one`, and its cloud, which ends with the context."""
    cloud = warm_localcloud.start(folder / "cloud")
    try:
        checkout = folder / "project"
        checkout.mkdir()
        (checkout / "Pulumi.yaml").write_text(project)
        (checkout / "Pulumi.one.yaml").write_text("config: {}\n")
        (checkout / "__main__.py").write_text(program)
        for name in (".venv", "components", "bezel"):
            (checkout / name).symlink_to(ROOT / name)
        engine = LocalEngine(Project(checkout), folder / "engine", control.environment(cloud))
        engine.prepare("one")
        yield engine, cloud
    finally:
        control.stop(folder / "cloud")


def names(inventory: Json, kind: str) -> set[str]:
    """Names of the resources of a kind."""
    return {name.rpartition("/")[2] for name in inventory.get(kind, [])}
