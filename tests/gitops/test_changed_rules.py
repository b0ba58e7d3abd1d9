"""Rules of `bezel ci changed`: which file concerns which stack, and that more files never concern fewer stacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.gitops.changed.import_closure import UnparsedError, closures, modules_of
from bezel.gitops.changed.report import ChangedReport
from bezel.gitops.changed.rules import (
    Concerned,
    FileChange,
    Program,
    Reason,
    find_concerned,
    needs_plans,
    needs_program,
)

ROOT = Path(__file__).parents[2]
PROGRAM = Program(
    stacks={"l4": ("service",), "tpu": ("lease",), "broken": ("service", "lease")},
    closures={
        "service": {
            "__main__.py",
            "bezel/planner/__init__.py",
            "services/bezel_services/cloud_run.py",
            "smoke/bezel_smoke/checks.py",
            "bezel/diagnosis/diagnosis.py",
        },
        "lease": {"__main__.py", "bezel/planner/__init__.py", "services/bezel_services/lease.py"},
    },
    differing={"l4": "cost"},
)
EVERY = {"l4", "tpu", "broken"}


def stacks(*changes: tuple[str, str]) -> set[str]:
    return set(find_concerned([FileChange(status, path) for status, path in changes], PROGRAM).reasons)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docs/gitops.md", set()),
        ("tests/gitops/test_changed_rules.py", set()),
        ("README.md", set()),
        ("tools/docs/localcloud.py", set()),
        ("packages/localcloud/bezel_localcloud/cloud.py", set()),
        ("packages/localcloud/bezel_localcloud/data/faults.toml", set()),
        ("bootstrap/bezel_bootstrap/__main__.py", set()),
        ("services/bezel_services/cloud_run.py", {"l4", "broken"}),
        ("services/bezel_services/lease.py", {"tpu", "broken"}),
        ("bezel/planner/__init__.py", EVERY),
        ("__main__.py", EVERY),
        ("bezel/diagnosis/failure_patterns.toml", {"l4", "broken"}),
        ("packages/catalog/bezel_catalog/data/prices.csv", {"l4"}),
        ("catalog.toml", {"l4"}),
        ("sub/catalog.toml", EVERY),
        ("Pulumi.tpu.yaml", {"tpu"}),
        ("Pulumi.yaml", EVERY),
        ("pyproject.toml", EVERY),
        ("uv.lock", EVERY),
        ("Makefile", EVERY),
        ("tools/toolchain/pulumi_cli.py", EVERY),
        ("packages/pulumi-offline/bezel_pulumi_offline/language_host/runtime.py", EVERY),
        ("packages/pulumi-offline/bezel_pulumi_offline/plugins/pulumi-language-python", EVERY),
        ("packages/pulumi-offline/bezel_pulumi_offline/plugins/pulumi-resource-gcp", set()),
        (".github/workflows/deploy.yml", EVERY),
        ("yaml.py", EVERY),
        ("/elsewhere/file", EVERY),
        ("docs", EVERY),
        ("sub/README.md", EVERY),
        ("Pulumi.a/b.yaml", EVERY),
    ],
)
def test_a_file_concerns_the_stacks_that_load_it_and_an_unknown_one_all(path: str, expected: set[str]) -> None:
    assert stacks(("M", path)) == expected


def test_a_deleted_stack_file_is_reported_and_a_renamed_one_is_both() -> None:
    affected = find_concerned([FileChange("D", "Pulumi.old.yaml"), FileChange("A", "Pulumi.new.yaml")], PROGRAM)
    assert (set(affected.reasons), affected.deleted) == ({"new"}, ("old",))
    text = ChangedReport("b", "h", affected).text()
    assert "old: its file is deleted, so its resources stay" in text
    assert "new: Pulumi.new.yaml: the stack's own file is new" in text


def test_stacks_that_the_pipeline_does_not_deploy_are_examples() -> None:
    changes = [FileChange("M", "Pulumi.yaml"), FileChange("D", "Pulumi.old.yaml"), FileChange("D", "Pulumi.gone.yaml")]
    affected = find_concerned(changes, PROGRAM).within(before={"l4", "tpu", "old"}, after={"l4"})
    assert (set(affected.reasons), set(affected.examples)) == ({"l4"}, {"tpu", "broken"})
    assert (affected.deleted, affected.released) == (("old",), ("tpu",)), "an example is deleted without a word"
    report = ChangedReport("b", "h", affected, {"l4": "dev"})
    assert report.matrix == {"include": [{"stack": "l4", "environment": "dev"}]}
    assert 'examples=["tpu", "broken"]' in report.outputs() or 'examples=["broken", "tpu"]' in report.outputs()
    for text in (report.text(), report.markdown()):
        assert "neither previewed nor deployed" in text
        assert "names it no longer" in text
        assert "gone" not in text
    every = find_concerned(changes, PROGRAM).within(before=EVERY, after=EVERY)
    assert (set(every.reasons), dict(every.examples), every.released) == (EVERY, {}, ())


def test_plans_are_compared_only_where_the_catalogue_alone_changed() -> None:
    prices, stack = FileChange("M", "packages/catalog/bezel_catalog/data/prices.csv"), FileChange("M", "Pulumi.l4.yaml")
    assert needs_plans([stack], PROGRAM) == []
    assert needs_plans([prices, stack], PROGRAM) == ["tpu", "broken"]
    assert needs_plans([prices, FileChange("M", "uv.lock")], PROGRAM) == []
    own_models = FileChange("A", "catalog.toml")
    assert needs_plans([own_models, stack], PROGRAM) == ["tpu", "broken"]
    assert needs_program([own_models])


KNOWN = (
    *(
        "docs/a.md",
        "services/bezel_services/lease.py",
        "services/bezel_services/cloud_run.py",
        "packages/catalog/bezel_catalog/data/prices.csv",
        "Pulumi.tpu.yaml",
    ),
    *("Pulumi.gone.yaml", "Makefile", "smoke/x.toml", "bezel/gitops/x.py", "components/new.py"),
)
PATHS = st.sampled_from(KNOWN) | st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=20)
CHANGES = st.lists(st.builds(FileChange, st.sampled_from("AMDT"), PATHS), max_size=6)


@pytest.mark.slow
@given(CHANGES, CHANGES)
def test_more_files_never_concern_fewer_stacks(some: list[FileChange], more: list[FileChange]) -> None:
    few, many = find_concerned(some, PROGRAM), find_concerned([*some, *more], PROGRAM)
    assert set(few.reasons) <= set(many.reasons)
    assert set(few.deleted) <= set(many.deleted)
    assert all(set(reasons) <= set(many.reasons[stack]) for stack, reasons in few.reasons.items())


@pytest.mark.slow
def test_each_kind_loads_its_own_module_and_both_load_planner_and_packs() -> None:
    loaded = closures(ROOT)
    assert "services/bezel_services/cloud_run.py" in loaded["service"] - loaded["lease"]
    assert "services/bezel_services/lease.py" in loaded["lease"] - loaded["service"]
    for both in (
        "__main__.py",
        "bezel/planner/assemble/build.py",
        "policies/bezel_policies/security/pack.py",
        "smoke/bezel_smoke/health.py",
    ):
        assert all(both in paths for paths in loaded.values()), both
    for neither in (
        "packages/localcloud/bezel_localcloud/cloud.py",
        "bezel/operations/plan/plan.py",
        "bootstrap/bezel_bootstrap/__main__.py",
    ):
        assert neither in modules_of(ROOT).values()
        assert not any(neither in paths for paths in loaded.values()), neither


def test_imports_count_wherever_they_stand_and_so_do_names_of_modules(tmp_path: Path) -> None:
    for name, text in {
        "__main__.py": "import bezel_stacks.dispatch",
        "stacks/bezel_stacks/__init__.py": "",
        "stacks/bezel_stacks/dispatch.py": "def f():\n    from bezel_services import leased_vllm_service, vllm_service",
        "services/bezel_services/__init__.py": "",
        "services/bezel_services/leased_vllm_service.py": "NAME = 'bezel_components.late'",
        "services/bezel_services/vllm_service.py": "from . import near\nfrom .deep.inner import thing",
        "services/bezel_services/near.py": "",
        "services/bezel_services/deep/__init__.py": "from ..near import x",
        "services/bezel_services/deep/inner.py": "thing = 1",
        "components/bezel_components/late.py": "",
        "components/bezel_components/unused.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    loaded = closures(tmp_path)
    assert loaded["lease"] - loaded["service"] == {
        "services/bezel_services/leased_vllm_service.py",
        "components/bezel_components/late.py",
    }
    assert {
        "services/bezel_services/near.py",
        "services/bezel_services/deep/__init__.py",
        "services/bezel_services/deep/inner.py",
    } <= loaded["service"]
    assert not any("components/bezel_components/unused.py" in paths for paths in loaded.values())
    (tmp_path / "components/bezel_components/unused.py").write_text("(")
    closures(tmp_path)
    (tmp_path / "services/bezel_services/near.py").write_text("(")
    with pytest.raises(UnparsedError, match=r"services/bezel_services/near\.py"):
        closures(tmp_path)


def test_the_report_has_a_matrix_and_shows_few_reasons() -> None:
    reasons = {"l4": tuple(Reason("imported", f"stacks/f{n}.py") for n in range(9))}
    report = ChangedReport("b", "h", Concerned(reasons))
    assert report.matrix == {"include": [{"stack": "l4", "environment": ""}]}
    named = ChangedReport("b", "h", Concerned(reasons), {"l4": "prod"})
    assert named.matrix == {"include": [{"stack": "l4", "environment": "prod"}]}
    assert report.text() == "l4: stacks/f0.py: imported; stacks/f1.py: imported; stacks/f2.py: imported; 6 more\n"
    assert "`stacks/f0.py`: imported" in report.markdown()
    assert report.as_json()["stacks"] == [{"stack": "l4", "reasons": [f"stacks/f{n}.py: imported" for n in range(9)]}]
    assert report.outputs().splitlines()[1] == 'stacks=["l4"]'
    none = ChangedReport("b", "h", Concerned({}))
    assert (none.text(), none.matrix) == ("no stack is concerned\n", {"include": []})
    assert "count=0" in none.outputs()
