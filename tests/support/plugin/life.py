"""The life of a program that deploys a model as one resource: made, unchanged, changed, destroyed."""

from typing import Any

from tests.support.plugin.program import Program

CHECKS = {"bezel:components:ModelFiles", "bezel:smoke:HealthCheck", "bezel:smoke:ShortBenchmark"}
COMPONENTS = {
    "bezel:cloudrun:CloudRunGpuService",
    "bezel:identity:RuntimeIdentity",
    "bezel:project:EnabledApis",
    "bezel:registry:ContainerImage",
    "bezel:services:VllmService",
    "bezel:storage:WeightsBucket",
}


def live(program: Program, file: str, old: str, new: str, updated: int) -> dict[str, Any]:
    """Let the program live; `old` in its file becomes `new` for the change of an option.

    Args:
        program: The program.
        file: The file.
        old: A text that it has once.
        new: What this becomes.
        updated: How many resources the change updates.

    Returns:
        The outputs of the changed service.
    """
    made = program.run("up", "--yes", "--skip-preview")
    assert made.code == 0, made.text
    types = {resource["type"] for resource in program.state()}
    assert types >= COMPONENTS | CHECKS
    assert not {type_ for type_ in types if type_.startswith("pulumi-python")}
    health, first = _outputs(program, "HealthCheck"), _outputs(program, "VllmService")
    assert health["verdict"]["ok"] is True
    # The package does not see what the program declares beside the service.
    assert "resources" not in health
    assert first["verdict"] == health["verdict"]
    assert first["figures"]["completed"] == 8
    assert first["simulated"] is True
    assert program.inventory()["services"]

    unchanged = program.run("preview", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text

    program.change(file, old, new)
    changed = program.run("up", "--yes", "--skip-preview")
    assert changed.code == 0, changed.text
    # The service has a new revision, which is checked and measured; nothing is replaced.
    second = _outputs(program, "VllmService")
    assert second["revision"] != first["revision"]
    assert second["figures"]["run"] != first["figures"]["run"]
    assert f"~ {updated} updated" in changed.text, changed.text
    assert "replaced" not in changed.text

    ended = program.run("destroy", "--yes", "--skip-preview")
    assert ended.code == 0, ended.text
    assert "services" not in program.inventory()
    return second


def _outputs(program: Program, name: str) -> dict[str, Any]:
    """The outputs of the only resource of the package with this name of a type."""
    (resource,) = (each for each in program.state() if each["type"].endswith(f":{name}"))
    outputs: dict[str, Any] = resource["outputs"]
    return outputs
