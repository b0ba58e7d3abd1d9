"""A program that declares its services itself has no settings of a stack file: only what plans them is refused."""

from pathlib import Path

import pytest

from bezel.engine.project.own_program import check_settings, declares_its_services
from bezel.engine.project.project import Project, ProjectError

OWN = "from bezel_services.vllm_service import VllmService\n"
OF_STACK_FILES = "from bezel_stacks.program import run\n\nrun()\n"


def project(folder: Path, program: str | None, stack_file: str) -> Project:
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text(stack_file)
    if program is not None:
        (folder / "__main__.py").write_text(program)
    return Project(folder)


@pytest.mark.parametrize(
    ("program", "stack_file", "is_own"),
    [
        (OWN, "config: {}\n", True),
        (OWN, "config: {gcp:project: acme-llm}\n", True),
        (None, "config: {}\n", True),  # a program in YAML or TypeScript
        (OF_STACK_FILES, "config: {}\n", False),  # its settings are missing, which the plan says
        (OWN, "config: {bezel:model: gemma-4-e2b-it}\n", False),
    ],
)
def test_own_program_has_no_settings_and_reads_none(
    tmp_path: Path, program: str | None, stack_file: str, is_own: bool
) -> None:
    assert declares_its_services(project(tmp_path, program, stack_file), "dev") is is_own


def test_own_program_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="declares its services itself") as refused:
        check_settings(project(tmp_path, OWN, "config: {}\n"), "dev")
    assert "`pulumi preview --stack dev`" in str(refused.value)
    with pytest.raises(ProjectError, match=r"there is no Pulumi\.prod\.yaml"):
        check_settings(Project(tmp_path), "prod")


def test_stack_with_settings_is_taken(tmp_path: Path) -> None:
    check_settings(project(tmp_path, OF_STACK_FILES, "config: {bezel:model: gemma-4-e2b-it}\n"), "dev")
