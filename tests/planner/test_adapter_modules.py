"""Adapters that the server loads at its start: what is refused before it is paid for, and what is looked for."""

import pytest

from bezel.planner import PlanError, make_plan
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import L4X8, with_lease_changes

OWN = "gemma-4-12b-it-qat-w4a16"
FOLDER = "/mnt/models/sql"


def plan_with_adapters(modules, *, lora=True, **settings):
    vllm = {"enable-lora": lora, "lora-modules": modules, "max-lora-rank": 32} | settings.pop("vllm", {})
    return make_plan(with_changes({"vllm": vllm} | settings), project="acme-llm", stack="one")


@pytest.mark.parametrize(
    ("modules", "folders"),
    [
        (f"sql={FOLDER}", ["sql"]),
        ([f"sql={FOLDER}", "law=/mnt/models/own/law/"], ["sql", "own/law"]),
        ([f"sql={FOLDER}", f"again={FOLDER}"], ["sql"]),
        ({"name": "sql", "path": FOLDER}, ["sql"]),
        ([{"name": "sql", "path": FOLDER, "base_model_name": OWN}], ["sql"]),
        (f'{{"name": "sql", "path": "{FOLDER}"}}', ["sql"]),
        (None, []),
    ],
)
def test_folders_of_adapters_are_looked_for_with_their_largest_rank(modules: object, folders: list[str]) -> None:
    assert plan_with_adapters(modules).weights.adapters == dict.fromkeys(folders, 32)


def test_an_adapter_of_a_medium_is_looked_for_too() -> None:
    made = plan_with_adapters(None, vllm={"default-mm-loras": {"image": FOLDER}})
    assert made.weights.adapters == {"sql": 32}


@pytest.mark.parametrize(
    ("modules", "consequence", "settings"),
    [
        ("sql", "parser refuses it", {}),
        ("sql=", "name and path are both needed", {}),
        (f"={FOLDER}", "name and path are both needed", {}),
        ('{"name": "sql"}', "parser refuses it", {}),
        (f'{{"name": "sql", "path": "{FOLDER}", "rank": 8}}', "parser refuses it", {}),
        (f"sql={FOLDER},law={FOLDER}", "parser refuses it", {}),
        ([f"a={FOLDER}", f"a={FOLDER}2"], "the name of another adapter", {}),
        (f"{OWN}={FOLDER}", "the model's own name", {}),
        (f"own={FOLDER}", "the model's own name", {"vllm": {"served-model-name": ["chat", "own"]}}),
        ("sql=/tmp/sql", "the bucket is mounted at /mnt/models", {}),
        ("sql=/mnt/models-of-others/sql", "the bucket is mounted at /mnt/models", {}),
        ("sql=acme/sql", "HF_HUB_OFFLINE=1", {}),
        ("sql=gs://acme-models/sql", "neither a folder of the container", {}),
        ("sql=./sql", "neither a folder of the container", {}),
        (f"sql={FOLDER}", "no bucket is mounted", {"weights": {"loading": "runai-streamer"}}),
        (f"sql={FOLDER}", "no bucket is mounted", {"weights": {"loading": "hub"}}),
        (f"sql={FOLDER}", "LoRA is not enabled", {"lora": False}),
    ],
)
def test_an_adapter_that_ends_the_start_is_refused(modules: object, consequence: str, settings: dict) -> None:
    with pytest.raises(PlanError) as refused:
        plan_with_adapters(modules, **settings)
    (problem,) = refused.value.problems
    assert problem.key.startswith("bezel:vllm.lora-modules")
    assert consequence in problem.consequence
    assert problem.repair


@pytest.mark.parametrize(
    ("module", "settings"),
    [
        ("sql=acme/sql", {"weights": {"loading": "hub"}}),
        ("sql=/opt/sql", {"image": {"registry": "ghcr.io", "repository": "acme/vllm", "tag": "v0.32.0"}}),
    ],
)
def test_an_adapter_of_the_hub_or_of_an_own_image_is_planned(module: str, settings: dict) -> None:
    made = plan_with_adapters(module, **settings)
    assert made.weights.adapters == {}
    assert f"--lora-modules={module}" in made.server.arguments


def test_a_leased_machine_has_no_adapters_of_the_bucket() -> None:
    config = with_lease_changes(L4X8, vllm={"enable-lora": True, "lora-modules": f"sql={FOLDER}"})
    with pytest.raises(PlanError) as refused:
        make_plan(config, project="acme-llm", stack="one")
    (problem,) = [each for each in refused.value.problems if "lora" in each.key]
    assert "only the model's own folder is copied to a leased machine" in problem.consequence
    assert "weights.loading: hub`" in problem.repair
