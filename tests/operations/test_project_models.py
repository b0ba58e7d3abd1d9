"""Rows of a project's own models are read wherever the catalogue is."""

import ast
import json
from pathlib import Path

import pytest

from bezel.engine.project.project import Project
from bezel.gitops.changed.plan_probe import parts
from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.catalog.show import ShowArguments, show
from bezel.operations.compare.compare import CompareArguments, compare
from bezel.operations.context import Context
from bezel.operations.cost.cost import CostArguments, cost
from bezel.operations.explain.explain import ExplainArguments, explain
from bezel_bench.validity.roofline import Hardware, hardware_of
from bezel_catalog.models import using_models
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.model_sources.tiny import LLAMA, llama

ROOT = Path(__file__).parents[2]
PRODUCT = ("bezel", "bootstrap", "components", "packages", "plugin", "policies", "services", "smoke", "stacks", "tools")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A project with a row of a tiny model, and a stack that names it."""
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  bezel:model: tiny\n  bezel:accelerator: nvidia-l4\n  bezel:region: us-east4\n"
        "  bezel:weights: {path: tiny}\n"
    )
    (tmp_path / "files" / "tiny").mkdir(parents=True)
    for name, content in llama().items():
        (tmp_path / "files" / "tiny" / name).write_bytes(content)
    made = Context(tmp_path, {"GOOGLE_CLOUD_PROJECT": "acme-llm"}, show=lambda _: None)
    plan = plan_add_model(made, AddModelArguments(model=str(tmp_path / "files" / "tiny")))
    apply_add_model(made, plan)
    return made


def test_catalogue_shows_the_row(context: Context) -> None:
    shown = show(context, ShowArguments(section="models"))
    (row,) = [row for row in shown.sections[0].rows if row["id"] == "tiny"]
    assert (row["layers"], row["hub id"]) == ("2 full", "(not published)")
    assert "folder tiny" in shown.text()


def test_comparison_has_the_row_on_every_machine(context: Context) -> None:
    rows = compare(context, CompareArguments(model="tiny", context=4096)).rows
    assert {row.machine for row in rows if row.model == "tiny" and row.deployable} >= {"nvidia-l4"}


def test_explanation_has_the_sampling_of_the_model(context: Context) -> None:
    (entry,) = explain(context, ExplainArguments(subject="tiny")).entries
    assert {fact.name: fact.value for fact in entry.facts}[
        "sampling"
    ] == "temperature 0.6, top_p 0.9 (generation_config.json)"


def test_price_of_a_stack_of_the_row_is_known(context: Context) -> None:
    assert "USD" in cost(context, CostArguments(stack="dev")).text()


def test_comparison_of_commits_plans_the_row(context: Context) -> None:
    assert parts(Project(context.folder), "dev")["kind"] == "service"


def test_roofline_of_a_benchmark_knows_the_row(context: Context) -> None:
    with using_models(context.project.models()):
        assert isinstance(hardware_of("tiny", "nvidia-l4", 1, 1, "auto"), Hardware)
    assert hardware_of("tiny", "nvidia-l4", 1, 1, "auto") == "checkpoint 'tiny' is not in the catalogue"


def test_synthetic_files_of_the_row_are_its_own(context: Context) -> None:
    with using_models(context.project.models()):
        files = model_files("tiny")
    assert json.loads(files["config.json"]) == LLAMA
    assert json.loads(files["generation_config.json"])["top_p"] == 0.9
    assert json.loads(files["model.safetensors.index.json"])["metadata"]["total_size"] == 279_168


def test_every_plan_of_a_projects_stack_gets_its_models() -> None:
    """A call without them would refuse a stack that another command plans."""
    calls = [
        (str(file.relative_to(ROOT)), call)
        for folder in PRODUCT
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "/tests/" not in str(file) and "make_plan(" in (source := file.read_text())
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "make_plan"
    ]
    without = {
        file
        for file, call in calls
        if not any(keyword.arg in ("models", None) for keyword in call.keywords)
        and "configuration(" in ast.unparse(call)
    }
    assert len(calls) > 15
    assert without <= {"tools/measure/interfaces.py"}  # it compares trees of other versions
