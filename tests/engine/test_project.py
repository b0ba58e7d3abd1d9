"""The project on disk: which stacks there are, and what configuration the engine would hand to the program."""

from pathlib import Path

import pytest

from bezel.engine.project.project import Project, ProjectError, find_project

DECLARED = """
name: bezel
runtime: python
config:
  bezel:region: {type: string, default: us-east4}
  bezel:vllm: {type: object, default: {}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "Pulumi.yaml").write_text(DECLARED)
    (tmp_path / "Pulumi.one.yaml").write_text("config:\n  bezel:vllm: {max-num-seqs: 8}\n  gcp:project: mine\n")
    (tmp_path / "Pulumi.two.yaml").write_text("")
    return Project(tmp_path)


@pytest.mark.parametrize(("written", "meant"), [("oen", "did you mean one? "), ("xyz", "")])
def test_a_misspelt_stack_is_reported_which_one_is_meant_where_one_is_near(
    project: Project, written: str, meant: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        project.stack_file(written)
    assert f"Repair: {meant}choose one of one, two" in str(caught.value)


def test_the_name_of_a_stack_may_hold_dots(project: Project) -> None:
    (project.folder / "Pulumi.a.b-c.yaml").write_text("config: {}\n")
    assert project.stacks() == ["a.b-c", "one", "two"]
    assert project.configuration("a.b-c")["region"] == "us-east4"


@pytest.mark.parametrize("stack", ["../x", "sub/one", "/one", "x" * 3000, "a\0b"])
def test_a_name_that_leads_elsewhere_is_no_stack(project: Project, stack: str) -> None:
    (project.folder / "Pulumi.sub").mkdir()
    (project.folder / "Pulumi.sub" / "one.yaml").write_text("config: {}\n")
    with pytest.raises(ProjectError, match="a stack's name has at most 100 letters"):
        project.stack_file(stack)


def test_configuration_is_the_stacks_over_the_declared_defaults(project: Project) -> None:
    assert project.configuration("one") == {"region": "us-east4", "vllm": {"max-num-seqs": 8}}


def test_an_empty_stack_file_means_the_defaults(project: Project) -> None:
    assert project.configuration("two") == {"region": "us-east4", "vllm": {}}


def test_the_engines_configuration_has_every_namespace(project: Project) -> None:
    declared = "  docker:a:\n    value: true\n  docker:b: text\n  docker:c:\n  bezel:d:\n    type: string\n"
    (project.folder / "Pulumi.yaml").write_text(f"{DECLARED.rstrip()}\n{declared}")
    values = {"bezel:region": "us-east4", "bezel:vllm": {"max-num-seqs": 8}}
    assert project.engine_configuration("one") == {
        **values, "gcp:project": "mine", "docker:a": "true", "docker:b": "text"
    }  # fmt: skip


def test_values_of_other_namespaces_are_left_out(project: Project) -> None:
    assert "project" not in project.configuration("one")
    assert project.cloud_project("one") == "mine"


def test_the_cloud_project_comes_from_the_environment_by_default(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cloud project comes from the environment where the stack names none."""
    monkeypatch.setenv("GOOGLE_PROJECT", "theirs")
    assert project.cloud_project("two") == "theirs"
    assert project.cloud_project("one") == "mine"


def test_a_missing_stack_is_named_with_those_that_exist(project: Project) -> None:
    with pytest.raises(ProjectError, match=r"STACK = three\n   there is no Pulumi\.three\.yaml\.\n.*one, two"):
        project.configuration("three")


def test_values_are_those_that_json_knows_as_the_engine_hands_them_over(project: Project) -> None:
    (project.folder / "Pulumi.one.yaml").write_text("config: {5: 6, public: true, none: , vllm: {true: [1.5]}}")
    assert project.configuration("one") == {
        "5": "6", "public": "true", "none": "", "region": "us-east4", "vllm": {"true": [1.5]},
    }  # fmt: skip


def test_a_key_without_namespace_is_the_projects(project: Project) -> None:
    (project.folder / "Pulumi.one.yaml").write_text("config: {vllm: {a: 1}, gcp:config:project: theirs}\n")
    assert project.configuration("one")["vllm"] == {"a": 1}
    assert project.given_keys("one") == {"vllm"}
    assert project.cloud_project("one") == "theirs"


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (["bezel:config:vllm"], "Pulumi.one.yaml: bezel:config:vllm"),
        (["vllm", "bezel:vllm"], "reads each of vllm, bezel:vllm as bezel:vllm"),
        (["bezel:config:vllm", "bezel:vllm"], "reads each of bezel:config:vllm, bezel:vllm as bezel:vllm"),
        (["gcp:config:project", "gcp:project"], "Pulumi.one.yaml: gcp:project"),
    ],
)
def test_a_key_that_the_engine_renames_is_refused(project: Project, keys: list[str], named: str) -> None:
    (project.folder / "Pulumi.one.yaml").write_text("config:\n" + "".join(f"  {key}: x\n" for key in keys))
    with pytest.raises(ProjectError) as caught:
        project.configuration("one")
    assert named in str(caught.value)


def test_a_value_that_is_read_in_two_ways_is_refused_with_its_line(project: Project) -> None:
    """A value that is read in two ways is refused with its line and quoted it is text."""
    file = project.folder / "Pulumi.one.yaml"
    file.write_text("config:\n  vllm:\n    since: 2026-11-21\n    until: 010\n")
    with pytest.raises(ProjectError) as caught:
        project.configuration("one")
    assert "Pulumi.one.yaml line 3: vllm.since = 2026-11-21" in str(caught.value)
    assert 'quote it: "010".' in str(caught.value)
    file.write_text("config:\n  vllm:\n    since: '2026-11-21'\n    until: \"010\"\n")
    assert project.configuration("one")["vllm"] == {"since": "2026-11-21", "until": "010"}


@pytest.mark.parametrize(
    "text",
    [
        "config: [1, 2]",
        "- a list",
        "config: {a: b",
        "config: &a {b: *a}",
        "config: {? [1] : 2}",
        "config: " + "[" * 1000,
        "\tconfig: 1",
    ],
)
def test_a_file_of_another_shape_is_named(project: Project, text: str) -> None:
    (project.folder / "Pulumi.one.yaml").write_text(text)
    with pytest.raises(ProjectError, match=r"Pulumi\.one\.yaml"):
        project.configuration("one")


@pytest.mark.parametrize("text", ["hunter2", "- hunter2", "config: hunter2", "config: [hunter2]"])
def test_the_content_of_a_file_of_another_shape_is_not_shown(project: Project, text: str) -> None:
    (project.folder / "Pulumi.one.yaml").write_text(text)
    with pytest.raises(ProjectError, match="expected a mapping") as error:
        project.configuration("one")
    assert "hunter2" not in str(error.value)


def test_the_project_is_found_from_a_folder_below_it(project: Project) -> None:
    below = project.folder / "a" / "b"
    below.mkdir(parents=True)
    assert find_project(below) == project


def test_the_settings_have_one_namespace_whatever_the_project_is_called(project: Project) -> None:
    (project.folder / "Pulumi.yaml").write_text("name: chat\nruntime: python\n")
    (project.folder / "Pulumi.one.yaml").write_text("config:\n  bezel:region: us-east4\n  own: {}\n  chat:other: 1\n")
    assert project.configuration("one") == {"region": "us-east4"}
    assert project.given_keys("one") == {"region"}


def test_another_spelling_of_a_setting_is_named_in_any_project(project: Project) -> None:
    (project.folder / "Pulumi.yaml").write_text("name: chat\nruntime: python\n")
    (project.folder / "Pulumi.one.yaml").write_text("config:\n  bezel:config:region: us-east4\n")
    with pytest.raises(ProjectError, match="write bezel:region"):
        project.configuration("one")


def test_a_folder_outside_any_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="no Pulumi project"):
        find_project(tmp_path)
