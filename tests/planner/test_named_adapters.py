"""Adapters of the setting `adapters`: the options that serve them, and entries that are refused with a repair."""

import pytest

from bezel.planner import PlanError, make_plan
from tests.support.planner.l4_stack import check_refused, problems_of, with_changes
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, with_lease_changes

SQL = {"name": "sql", "source": "acme/sql-lora", "rank": 8}
LAW = {"name": "law", "path": "own/law", "rank": 24}
HUB = {"weights": {"loading": "hub"}}
MODEL = "gemma-4-12b-it-qat-w4a16"


def plan_with_adapters(*adapters, **settings):
    return make_plan(with_changes({"adapters": list(adapters)} | settings), project="acme-llm", stack="one")


def arguments_of(plan):
    return [word for word in plan.server.arguments if "lora" in word]


def test_options_serve_each_adapter_by_name_from_its_folder() -> None:
    plan = plan_with_adapters(SQL, LAW)
    index = plan.server.arguments.index("--lora-modules")
    assert plan.server.arguments[index + 1 : index + 3] == (
        "sql=/mnt/models/adapters/sql",
        "law=/mnt/models/own/law",
    )
    assert {"--enable-lora", "--max-loras=2", "--max-lora-rank=32"} <= set(plan.server.arguments)
    assert plan.weights.adapters == {"adapters/sql": 32, "own/law": 32}


def test_no_adapter_adds_no_option() -> None:
    assert arguments_of(plan_with_adapters()) == []


def test_the_memory_of_the_plan_has_room_for_the_ranks() -> None:
    rooms = [plan_with_adapters({"name": "a", "rank": rank}).fit.adapter_bytes for rank in (8, 16, 17, 64)]
    assert rooms[0] == rooms[1] > 0
    assert rooms[2] == 2 * rooms[1]
    assert rooms[3] == 4 * rooms[1]


def test_adapters_beyond_a_batch_stay_in_the_memory_of_the_host() -> None:
    many = [{"name": f"a{number}"} for number in range(10)]
    flags = arguments_of(plan_with_adapters(*many, vllm={"max-num-seqs": 4}))
    assert {"--max-loras=4", "--max-cpu-loras=10"} <= set(flags)
    assert "--max-cpu-loras=4" not in arguments_of(plan_with_adapters(*many[:4], vllm={"max-num-seqs": 4}))


def test_the_stack_file_chooses_how_many_a_batch_holds() -> None:
    flags = arguments_of(plan_with_adapters(SQL, LAW, vllm={"max-loras": 1, "max-lora-rank": 64}))
    assert {"--max-loras=1", "--max-cpu-loras=2", "--max-lora-rank=64"} <= set(flags)


def test_a_server_that_loads_from_the_hub_downloads_its_adapters() -> None:
    plan = plan_with_adapters({"name": "sql", "source": "hf:acme/sql-lora"}, **HUB)
    assert "--lora-modules=sql=acme/sql-lora" in plan.server.arguments
    assert plan.weights.adapters == {}


@pytest.mark.parametrize(
    ("change", "key", "consequence", "repair"),
    [
        ({"adapters": [SQL, SQL]}, "adapters.1.name", "the name of another adapter", "choose another name"),
        ({"adapters": [{"name": MODEL}]}, "adapters.0.name", "the model's own name", "choose another name"),
        ({"adapters": [{"name": "a=b"}]}, "adapters.0.name", "does not have the form", "name: sql"),
        ({"adapters": [{"path": "own/sql"}]}, "adapters.0.name", "it is required", "sql"),
        ({"adapters": [SQL | {"rank": 0}]}, "adapters.0.rank", "out of range", "at least 1"),
        ({"adapters": [SQL | {"rank": 513}]}, "adapters.0.rank", "out of range", "at most 512"),
        ({"adapters": [SQL | {"ranks": 8}]}, "adapters.0.ranks", "does not exist", "adapters.0.rank"),
        ({"adapters": [SQL | {"source": "sql"}]}, "adapters.0.source", "not an id", "OWNER/NAME"),
        ({"adapters": [SQL | {"source": "gs://b/sql"}]}, "adapters.0.source", "only adapters of the", "path: FOLDER"),
        ({"adapters": [SQL | {"path": "../sql"}]}, "adapters.0.path", "not a folder", "adapters/sql"),
        ({"adapters": [SQL | {"path": "gs://b/sql"}]}, "adapters.0.path", "not a folder", "adapters/sql"),
        (
            {"adapters": [SQL | {"path": "gemma-4-12B-it-qat-w4a16-ct"}]},
            "adapters.0.path",
            "the model's own folder",
            "adapters/sql",
        ),
        ({"adapters": [LAW | {"path": None}], **HUB}, "adapters.0.source", "no id there", "source: OWNER/NAME"),
        (
            {"adapters": [SQL | {"source": "acme/sql-lora@v2"}], **HUB},
            "adapters.0.source",
            "takes no revision",
            "fuse-prefetch",
        ),
        ({"adapters": [SQL | {"path": "own/sql"}], **HUB}, "adapters.0.path", "no effect", "remove it"),
        ({"adapters": [SQL], "weights": {"loading": "runai-streamer"}}, "adapters", "no bucket", "fuse-prefetch"),
        (
            {"adapters": [SQL], "vllm": {"lora-modules": ["law=/mnt/models/law"]}},
            "vllm.lora-modules",
            "would be missing",
            "bezel:adapters",
        ),
        ({"adapters": [SQL], "vllm": {"lora-modules": None}}, "vllm.lora-modules", "would be missing", "adapters"),
        ({"adapters": [SQL], "vllm": {"enable-lora": False}}, "vllm.enable-lora", "no adapter", "remove it"),
        ({"adapters": [LAW], "vllm": {"max-lora-rank": 16}}, "vllm.max-lora-rank", "rank of law is 24", "24 or more"),
    ],
)
def test_wrong_adapters_are_refused_with_a_repair(change: dict, key: str, consequence: str, repair: str) -> None:
    check_refused(change, f"bezel:{key}", consequence, repair)


def test_ranks_that_do_not_fit_the_accelerator_are_refused() -> None:
    (problem,) = problems_of({"adapters": [{"name": f"a{number}", "rank": 512} for number in range(8)]})
    assert "for adapters" in problem.consequence
    assert "max-lora-rank" in problem.repair


def test_leased_gpus_load_adapters_from_the_hub() -> None:
    config = with_lease_changes(L4X8, adapters=[SQL], **HUB)
    plan = make_plan(config, project="acme-llm", stack="one")
    assert "--lora-modules=sql=acme/sql-lora" in plan.server.arguments


@pytest.mark.parametrize(
    ("stack", "consequence", "repair"),
    [
        (L4X8, "only the model's own folder is copied", "weights.loading: hub"),
        (V6E4_MOE, "adapters on a TPU are not known to work", "remove them"),
    ],
)
def test_a_lease_refuses_adapters_that_it_cannot_load(stack: dict, consequence: str, repair: str) -> None:
    with pytest.raises(PlanError) as refused:
        make_plan(with_lease_changes(stack, adapters=[SQL]), project="acme-llm", stack="one")
    (problem,) = refused.value.problems
    assert (problem.key, problem.value) == ("bezel:adapters", "sql")
    assert consequence in problem.consequence
    assert repair in problem.repair
