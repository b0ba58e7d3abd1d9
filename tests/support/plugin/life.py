"""The life of a program that deploys the package's components: made, unchanged, changed, destroyed."""

from tests.support.plugin.program import Program

CHECKS = {"bezel:components:ModelFiles", "bezel:smoke:HealthCheck"}
COMPONENTS = {
    "bezel:cloudrun:CloudRunGpuService",
    "bezel:identity:RuntimeIdentity",
    "bezel:project:EnabledApis",
    "bezel:registry:ContainerImage",
    "bezel:storage:WeightsBucket",
}


def live(program: Program, file: str, old: str, new: str) -> None:
    """Let the program live; `old` in its file becomes `new` for the change of its service."""
    made = program.run("up", "--yes", "--skip-preview")
    assert made.code == 0, made.text
    state = program.state()
    types = {resource["type"] for resource in state}
    assert types >= COMPONENTS | CHECKS
    assert not {type_ for type_ in types if type_.startswith("pulumi-python")}
    (health,) = (resource for resource in state if resource["type"] == "bezel:smoke:HealthCheck")
    assert health["outputs"]["verdict"]["ok"] is True
    assert not {"urn", "stack", "provider"} & health["inputs"].keys()
    assert program.inventory()["services"]

    unchanged = program.run("preview", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text

    program.change(file, old, new)
    changed = program.run("up", "--yes", "--skip-preview")
    assert changed.code == 0, changed.text
    # The health check runs again for the new revision, and nothing is replaced.
    assert "~ 2 updated" in changed.text, changed.text
    assert "replaced" not in changed.text

    ended = program.run("destroy", "--yes", "--skip-preview")
    assert ended.code == 0, ended.text
    assert "services" not in program.inventory()
