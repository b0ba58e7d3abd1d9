"""The pipeline's file: what it says holds, every problem is named at once, and a missing one is said aloud."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from bezel.engine.project.pack_limits import POLICIES
from bezel.engine.project.pipeline_file import (
    ENVIRONMENTS,
    FILE,
    REQUIRED_PACKS,
    Pipeline,
    PipelineError,
    configuration_of,
    pipeline_of,
    read_pipeline,
)
from bezel.engine.project.project import Project
from bezel.engine.run.policy_packs import configurations, with_packs
from bezel_policies.hardware_cost import pack as hardware_cost
from bezel_policies.security import pack as security
from tests.support.gitops.working_copy import ROOT

PACKS = """
[packs.hardware_cost]
dev = "policies/hardware_cost.dev.json"
prod = "policies/hardware_cost.prod.json"
[packs.security]
dev = "policies/security.dev.json"
prod = "policies/security.prod.json"
"""
VALID = f'protected_environments = ["prod"]\n[stacks]\nsmall = "dev"\nlarge = "prod"\n{PACKS}'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a stack in each environment, and one more file."""
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    for stack, environment in (("small", "dev"), ("large", "prod"), ("shown", "dev")):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(f"config:\n  bezel:environment: {environment}\n")
    for pack in (*REQUIRED_PACKS, "price"):
        (tmp_path / "policies" / pack).mkdir(parents=True)
        (tmp_path / "policies" / pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    for file in (ROOT / "policies").glob("*.json"):
        shutil.copy(file, tmp_path / "policies")
    (tmp_path / FILE).write_text(VALID)
    return Project(tmp_path)


def problems(project: Project, text: str | bytes) -> list[str]:
    content = text if isinstance(text, bytes) else text.encode()
    (project.folder / FILE).write_bytes(content)
    with pytest.raises(PipelineError) as refused:
        pipeline_of(project)
    assert all(problem.repair for problem in refused.value.problems)  # type: ignore[union-attr]
    return [str(problem) for problem in refused.value.problems]


def test_a_valid_file_names_stacks_environments_and_limits(project: Project) -> None:
    pipeline = pipeline_of(project)
    assert dict(pipeline.stacks) == {"small": "dev", "large": "prod"}
    assert (pipeline.protected, pipeline.is_declared) == (("prod",), True)
    assert pipeline.examples(project) == ["shown"]
    pack = project.folder / "policies" / "hardware_cost"
    assert configuration_of(pack, "prod") == project.folder / "policies" / "hardware_cost.prod.json"
    assert configuration_of(project.folder / "policies" / "price", "dev") is None


def test_the_shipped_file_is_valid_and_names_no_stack_without_a_price() -> None:
    pipeline = read_pipeline(Project(ROOT))
    assert pipeline.stacks
    assert "gce-l4x8" in pipeline.examples(Project(ROOT))


def test_the_shipped_environments_are_those_of_the_shipped_file() -> None:
    packs = tomllib.loads((ROOT / FILE).read_text())["packs"]
    assert {tuple(files) for files in packs.values()} == {ENVIRONMENTS}


def test_an_environment_of_any_word_has_stacks_with_limits_of_its_own(project: Project) -> None:
    (project.folder / "Pulumi.trial.yaml").write_text("config:\n  bezel:environment: staging\n")
    limits, packs = {"hardware_cost": {}, "security": {}}, PACKS
    for pack in limits:
        text = (project.folder / "policies" / f"{pack}.dev.json").read_text().replace('"dev"', '"staging"')
        (project.folder / "policies" / f"{pack}.staging.json").write_text(text)
        packs = packs.replace(f"[packs.{pack}]", f'[packs.{pack}]\nstaging = "policies/{pack}.staging.json"')
    content = f'protected_environments = ["staging"]\n{STACKS}trial = "staging"\n{packs}'
    (project.folder / FILE).write_text(content)
    pipeline = read_pipeline(project)
    assert (pipeline.stacks["trial"], pipeline.protected) == ("staging", ("staging",))
    pack = project.folder / "policies" / "hardware_cost"
    assert configuration_of(pack, "staging") == project.folder / "policies" / "hardware_cost.staging.json"


def test_the_documented_file_is_the_shipped_one() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "gitops.md").read_text(), re.DOTALL)
    assert tomllib.loads(block) == tomllib.loads((ROOT / FILE).read_text())


def test_without_a_file_every_stack_counts_and_a_note_says_so(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / FILE).unlink()
    (project.folder / "Pulumi.broken.yaml").write_text("config: [")
    pipeline = pipeline_of(project)
    assert dict(pipeline.stacks) == {"small": "dev", "large": "prod", "shown": "dev", "broken": "prod"}
    assert (pipeline.is_declared, pipeline.examples(project)) == (False, [])
    assert "every stack file counts" in capsys.readouterr().err
    with pytest.raises(PipelineError, match="cannot be read"):
        read_pipeline(project)


STACKS = '[stacks]\nsmall = "dev"\n'
WRONG = {
    "empty": ("", ("stacks = (not set)", "packs = (not set)")),
    "no stacks": (PACKS, ("stacks = (not set)",)),
    "no packs": (STACKS, ("packs = (not set)", "packs.hardware_cost = (not set)", "packs.security = (not set)")),
    "unknown key": (f"protected_environment = ['prod']\n{VALID}", ("no such key", "write protected_environments")),
    "unknown table": (f"{VALID}[limits]\nx = 1\n", ("limits", "no such key")),
    "environment": (
        f'{STACKS}large = "staging"\n{PACKS}',
        ("staging has stacks, and this pack",),
    ),
    "environment in capitals": (f'[stacks]\nsmall = "Dev"\n{PACKS}', ("stacks.small = Dev",)),
    "environment of a number": (f"[stacks]\nsmall = 1\n{PACKS}", ("stacks.small = 1",)),
    "environment of a table": (f"[stacks.small]\nenvironment = 'dev'\n{PACKS}", ("stacks.small",)),
    "protected unknown": (
        f'protected_environments = ["prd"]\n{STACKS}{PACKS}',
        ("protected_environments = prd", "name one of dev, prod"),
    ),
    "protected text": (f'protected_environments = "prod"\n{STACKS}{PACKS}', ("expected a list",)),
    "stacks of a list": (f'stacks = ["small"]\n{PACKS}', ("stacks", "expected a table")),
    "no file": (f'{STACKS}smal = "dev"\n{PACKS}', ("there is no Pulumi.smal.yaml", "did you mean small")),
    "other case": (f'[stacks]\nSMALL = "dev"\n{PACKS}', ("there is no Pulumi.SMALL.yaml", "small")),
    "differing by case": (f'{STACKS}Small = "dev"\n{PACKS}', ("differs from small by case only",)),
    "twice": (f'{STACKS}small = "prod"\n{PACKS}', ("not valid TOML", "stands there twice", "line 3")),
    "table twice": (f'{STACKS}{PACKS}[stacks]\nlarge = "prod"\n', ("not valid TOML", "stands there twice")),
    "folders above": (f'[stacks]\n"../small" = "dev"\n{PACKS}', ("stacks.../small", "at most 100 letters")),
    "only periods": (f'[stacks]\n".." = "dev"\n{PACKS}', ("at most 100 letters",)),
    "file name": (f'[stacks]\n"Pulumi.small.yaml" = "dev"\n{PACKS}', ("there is no Pulumi.Pulumi.small.yaml.yaml",)),
    "long name": (f'[stacks]\n{"x" * 101} = "dev"\n{PACKS}', ("at most 100 letters",)),
    "no name": (f'[stacks]\n"" = "dev"\n{PACKS}', ("at most 100 letters",)),
    "not the stack's": (f'{STACKS}large = "dev"\n{PACKS}', ("Pulumi.large.yaml has bezel:environment prod",)),
    "pack unknown": (f'{VALID}[packs.cost]\ndev = "policies/security.dev.json"\n', ("no policy pack policies/cost",)),
    "pack above": (f'{VALID}[packs.".."]\ndev = "policies/security.dev.json"\n', ("no policy pack policies/..",)),
    "pack of text": (f'{STACKS}{PACKS}[packs]\nprice = "x"\n', ("packs.price = x", "expected a table")),
    "environment of a pack": (f'{VALID}Staging = "policies/security.dev.json"\n', ("packs.security.Staging",)),
    "no limits for it": (VALID.replace("cost.prod.json", "cost.dev.json"), ("no limit for prod in hourly-ceiling",)),
    "outside": (VALID.replace("policies/security.dev", "docs/security.dev"), ("not below policies/",)),
    "above": (VALID.replace("policies/security.dev", "policies/../security.dev"), ("not below policies/",)),
    "absolute": (VALID.replace("policies/security.dev", "/etc/security.dev"), ("not below policies/",)),
    "gone": (VALID.replace("security.dev.json", "security.gone.json"), ("cannot be read as JSON",)),
    "folder": (VALID.replace("policies/security.dev.json", "policies/security"), ("cannot be read as JSON",)),
    "not UTF-8": (b"\xff\xfe", ("not UTF-8",)),
    "mark of order": (b"\xef\xbb\xbf" + VALID.encode(), ("mark of the byte order", "without BOM")),
    "UTF-16": (VALID.encode("utf-16"), ("not UTF-8",)),
    "long number": (f"x = {'9' * 5000}\n{VALID}", ("not valid TOML", "digits")),
    "long number of a stack": (f"[stacks]\nsmall = {'9' * 5000}\n{PACKS}", ("not valid TOML", "digits")),
    "long number in base 16": (f"[stacks]\nsmall = 0x{'9' * 5000}\n{PACKS}", ("more than 64 bits",)),
    "long number in a list": (f"x = [1, {{y = -0x{'9' * 5000}}}]\n{VALID}", ("not valid TOML",)),
    "long number in base 2": (f"x = [1, {{y = 0b{'1' * 20_000}}}]\n{VALID}", ("more than 64 bits",)),
    "short number": (f"x = {2**63 - 1}\n{VALID}", ("no such key",)),
    "long pack": (f'{VALID}[packs.{"x" * 5000}]\ndev = "policies/security.dev.json"\n', ("no policy pack",)),
    "pack of NUL": (f'{VALID}[packs."a\\u0000"]\ndev = "policies/security.dev.json"\n', ("no policy pack",)),
    "pack of folders": (f'{VALID}[packs."x/../price"]\ndev = "policies/security.dev.json"\n', ("no policy pack",)),
    "pack of nothing": (f'{VALID}[packs.""]\ndev = "policies/security.dev.json"\n', ("no policy pack",)),
    "long file of a pack": (VALID.replace("/security.dev", f"/{'x' * 5000}"), ("cannot be read as JSON",)),
    "not TOML": ("stacks: [small]", ("not valid TOML",)),
    "deep": ("x = " + "[" * 5000, ("not valid TOML",)),
    "large": ("#" * (256 * 1024 + 1), ("larger than 256 KiB",)),
    "secret": (f'[stacks]\nsmall = "hf_{"a" * 20}"\n{PACKS}', ("may be a secret",)),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_with_its_repair(project: Project, text: str | bytes, message: tuple[str, ...]) -> None:
    text_of_problems = "\n".join(problems(project, text))
    for word in message:
        assert word in text_of_problems


def test_all_problems_are_named_at_once(project: Project) -> None:
    text = f'extra = 1\n[stacks]\nsmal = "dev"\nlarge = "dev"\nsmall = "Stage"\n{PACKS}'.replace("y.prod", "y.gone")
    all_problems = problems(project, text)
    for word in ("extra", "stacks.smal ", "stacks.large", "stacks.small", "security.gone.json"):
        assert any(word in problem for problem in all_problems), word
    assert len(all_problems) == 5


@pytest.mark.parametrize("content", ["[]", "{", '"x"', "[" * 100_000])
def test_limits_that_are_no_object_are_refused(project: Project, content: str) -> None:
    (project.folder / "policies" / "security.dev.json").write_text(content)
    assert "packs.security.dev" in "\n".join(problems(project, VALID))


HOURLY = '{"hourly-ceiling": {"limits": {"dev": 6}}'
NO_LIMITS = {
    "nothing": ("{}", "it holds no limit"),
    "null": ('{"monthly-ceiling": null}', "an object with the keys of the policy in monthly-ceiling"),
    "a list": ('{"monthly-ceiling": []}', "an object with the keys"),
    "a number": ('{"monthly-ceiling": 1}', "an object with the keys"),
    "no key": ('{"monthly-ceiling": {}}', "an object with the keys"),
    "level alone": ('{"monthly-ceiling": "disabled"}', "an object with the keys"),
    "all off": ('{"all": "disabled"}', "no policy all"),
    "all off by a key": ('{"all": {"enforcementLevel": "disabled"}}', "no policy all"),
    "off beside limits": (
        '{"hourly-ceiling": {"limits": {"dev": 6}, "enforcementLevel": "advisory"}}',
        "let everything pass in hourly-ceiling",
    ),
    "level of a list": ('{"hourly-ceiling": {"limits": {"dev": 6}, "enforcementLevel": ["x"]}}', "let everything pass"),
    "another key": ('{"hourly-ceiling": {"exempt": []}}', "no limit for dev in hourly-ceiling"),
    "limits of null": ('{"hourly-ceiling": {"limits": null}}', "no limit for dev in hourly-ceiling"),
    "limits of nothing": ('{"hourly-ceiling": {"limits": {}}}', "no limit for dev in hourly-ceiling"),
    "limit of null": ('{"hourly-ceiling": {"limits": {"dev": null}}}', "no limit for dev in hourly-ceiling"),
    "limits of text": ('{"hourly-ceiling": {"limits": "dev"}}', "no limit for dev in hourly-ceiling"),
    "a policy twice": (
        f'{HOURLY}, "hourly-ceiling": {{"limits": {{"dev": 9}}}}}}',
        "hourly-ceiling stands there twice",
    ),
    "an environment twice": ('{"hourly-ceiling": {"limits": {"dev": 6, "dev": 9}}}', "dev stands there twice"),
    "NaN": ('{"hourly-ceiling": {"limits": {"dev": NaN}}}', "a finite number, got NaN"),
    "infinity": ('{"hourly-ceiling": {"limits": {"dev": -Infinity}}}', "a finite number, got -Infinity"),
    "a large number": ('{"hourly-ceiling": {"limits": {"dev": 1e999}}}', "a finite number, got 1e999"),
    "a long number": (f'{{"hourly-ceiling": {{"limits": {{"dev": {"9" * 5000}}}}}}}', "cannot be read as JSON"),
    "another pack's": ((ROOT / "policies" / "security.dev.json").read_text(), "no policy labels"),
    "another pack's beside": (f'{HOURLY}, "labels": {{"defaults": {{}}}}}}', "no policy labels"),
    "a typing error": ('{"hourly-cieling": {"limits": {"dev": 6}}}', "no policy hourly-cieling"),
    "mark of order": (f"\ufeff{HOURLY}}}", "cannot be read as JSON"),
}


@pytest.mark.parametrize(("content", "message"), NO_LIMITS.values(), ids=NO_LIMITS)
def test_limits_that_hold_nothing_are_refused(project: Project, content: str, message: str) -> None:
    (project.folder / "policies" / "hardware_cost.dev.json").write_text(content)
    (problem,) = problems(project, VALID)
    assert "packs.hardware_cost.dev" in problem
    assert message in problem


@pytest.mark.parametrize("content", ["{}", '{"labels": {}}', '{"all": "disabled"}', '{"labels": {"x": NaN}}',
    HOURLY + "}", '{"labels": {"enforcementLevel": "disabled"}}'])  # fmt: skip
def test_a_security_file_that_holds_nothing_is_refused(project: Project, content: str) -> None:
    (project.folder / "policies" / "security.dev.json").write_text(content)
    assert "packs.security.dev" in "\n".join(problems(project, VALID))


LIMITS = (
    f"{HOURLY}}}",
    '{"hourly-ceiling": {"limits": {"dev": 6.5, "prod": 9}, "exempt": []}}',
    '{"hourly-ceiling": {"limits": {"dev": 6}, "enforcementLevel": "mandatory"}}',
    '{"always-on": {"limits": {"dev": 0}}}',
    '{"provisioning-models": {"limits": {"dev": []}}}',
    f'{HOURLY}, "own-rule": {{"limits": {{"dev": 1}}}}}}',
)


@pytest.mark.parametrize("content", LIMITS)
def test_limits_that_hold_something_are_accepted(project: Project, content: str) -> None:
    pack = project.folder / "policies" / "hardware_cost"
    (pack / "pack.py").write_text("POLICIES = [resource_policy(UsdLimits, rules.own_rule)]\n")
    (pack.parent / "hardware_cost.dev.json").write_text(content)
    assert pipeline_of(project).is_declared


def test_the_names_of_policies_are_those_of_the_shipped_packs() -> None:
    assert {pack: sorted(names) for pack, names in POLICIES.items()} == {
        "hardware_cost": sorted(policy.name for policy in hardware_cost.POLICIES),
        "security": sorted(policy.name for policy in security.POLICIES),
    }


def test_links_out_of_what_is_reviewed_are_refused(project: Project) -> None:
    docs = project.folder / "docs"
    docs.mkdir()
    (docs / "limits.json").write_text(json.dumps({}))
    limits = project.folder / "policies" / "security.dev.json"
    limits.unlink()
    limits.symlink_to("../docs/limits.json")
    assert "a link out of policies/" in "\n".join(problems(project, VALID))
    (docs / FILE).write_text(VALID)
    (project.folder / FILE).unlink()
    (project.folder / FILE).symlink_to(f"docs/{FILE}")
    with pytest.raises(PipelineError, match="a link to a file elsewhere"):
        pipeline_of(project)


def test_a_view_of_a_project_made_of_links_is_read_like_the_project(project: Project, tmp_path: Path) -> None:
    view = tmp_path / "view"
    view.mkdir()
    for entry in project.folder.iterdir():
        if entry != view:
            (view / entry.name).symlink_to(entry)
    assert pipeline_of(Project(view)) == pipeline_of(project)


def test_the_packs_of_a_run_get_the_limits_that_the_file_names(project: Project) -> None:
    folder = project.folder
    (folder / "policies" / "strict.json").write_text(json.dumps({"hourly-ceiling": {"limits": {"dev": 1}}}))
    (folder / FILE).write_text(VALID.replace("hardware_cost.dev.json", "strict.json"))
    for typed in ("policies/hardware_cost", "policies/security/../hardware_cost"):
        made = with_packs(["--policy-pack", typed], here=folder, environment="dev")
        assert configurations(made) == [str(folder / "policies" / "strict.json")]
    by_hand = ["--policy-pack", "policies/hardware_cost", "--policy-pack-config", "policies/hardware_cost.dev.json"]
    assert configurations(with_packs(by_hand, here=folder, environment="dev")) == [
        str(folder / "policies" / "hardware_cost.dev.json")
    ]


def test_an_export_without_stack_files_has_its_own_limits(project: Project, tmp_path: Path) -> None:
    export = tmp_path / "export"
    shutil.copytree(project.folder / "policies", export / "policies")
    for name in (FILE, "Pulumi.yaml"):
        shutil.copy(project.folder / name, export)
    pack = export / "policies" / "hardware_cost"
    assert configuration_of(pack, "dev") == export / "policies" / "hardware_cost.dev.json"
    (export / "policies" / "hardware_cost.dev.json").unlink()
    with pytest.raises(PipelineError, match="cannot be read as JSON"):
        configuration_of(pack, "dev")


def test_a_pack_without_limits_in_the_file_gets_none_from_beside_it(project: Project) -> None:
    only = VALID.replace('large = "prod"\n', "").replace('prod = "policies/hardware_cost.prod.json"\n', "")
    (project.folder / FILE).write_text(only)
    pack = project.folder / "policies" / "hardware_cost"
    assert (pack.parent / "hardware_cost.prod.json").is_file()
    assert configuration_of(pack, "prod") is None
    assert isinstance(pipeline_of(project), Pipeline)
