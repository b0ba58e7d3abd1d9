"""Options that take host memory are inputs of the fit, on Cloud Run and on leased machines."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bezel.planner import PlanError, make_plan, plan_summary
from bezel.planner.vllm.host_options import read_host_options
from bezel_catalog import model
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.host_memory import API_SERVER_BYTES, PINNED_FACTOR, LayerGroups
from tests.support.planner.l4_stack import problems_of, with_changes

ROOT = Path(__file__).parents[2]
SIMPLE = {"kv_connector": "SimpleCPUOffloadConnector", "kv_role": "kv_both"}
TRUSTED = {"access": {"accepted_risks": ["kv-transfer-config.kv_connector_extra_config"]}}
LORA = {"enable-lora": True, "max-lora-rank": 320}


def offloading(size, connector="OffloadingConnector"):
    extra = {"kv_connector_extra_config": {"cpu_bytes_to_use": size * GIB}}
    return {"kv-transfer-config": {"kv_connector": connector, "kv_role": "kv_both", **extra}}


# Each option with a value that 16 GiB do not hold, and one that they do.
OPTIONS = {
    "kv-offloading-size": ({"kv-offloading-size": 64}, {"kv-offloading-size": 8}),
    "kv-offloading-size, rounded": ({"kv-offloading-size": 9}, {"kv-offloading-size": 7.5}),
    "cpu-offload-gb": ({"cpu-offload-gb": 4}, {"cpu-offload-gb": 3}),
    "offload-group-size": ({"offload-group-size": 1}, {"offload-group-size": 2}),
    "mm-processor-cache-gb": ({"mm-processor-cache-gb": 8}, {"mm-processor-cache-gb": 2}),
    "mm-processor-cache-gb, shared": (
        {"mm-processor-cache-gb": 13, "mm-processor-cache-type": "shm"},
        {"mm-processor-cache-gb": 8, "mm-processor-cache-type": "shm"},
    ),
    "api-server-count": ({"api-server-count": 32}, {"api-server-count": 4}),
}


@pytest.mark.parametrize(("too_much", "enough"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_the_host_cannot_hold_is_refused_by_its_name(too_much, enough):
    (problem,) = problems_of({"vllm": too_much})
    option = next(iter(too_much))
    assert problem.key == f"bezel:vllm.{option}"
    assert f"of {option}" in problem.consequence
    assert "exit code 137" in problem.consequence
    assert option in problem.repair
    assert "bezel:resources.memory" in problem.repair
    plan = make_plan(with_changes({"vllm": enough}), project="p", stack="s")
    assert option in [part.option for part in plan.fit.host_parts]
    assert f"host, {option}" in plan_summary(plan)
    assert option in plan.fit.as_output()["host_options_gib"]


@pytest.mark.parametrize("option", ["max-cpu-loras", "enable-sleep-mode", "kv-transfer-config"])
def test_further_options_take_their_part(option):
    vllm = {
        "max-cpu-loras": {**LORA, "max-cpu-loras": 4},
        "enable-sleep-mode": {option: True},
        "kv-transfer-config": {option: SIMPLE},
    }[option]
    plan = make_plan(with_changes({"vllm": vllm}), project="p", stack="s")
    (part,) = plan.fit.host_parts
    assert part.option == option
    if option == "enable-sleep-mode":
        assert part.needed_bytes == model(plan.model).weight_bytes
    if option == "kv-transfer-config":
        assert part.needed_bytes == 8 * GIB


def test_without_such_options_nothing_is_added():
    plan = make_plan(with_changes({}), project="p", stack="s")
    assert plan.fit.host_parts == ()
    assert "host while loading" in plan_summary(plan)
    off = {"cpu-offload-gb": 0, "offload-group-size": 0, "api-server-count": 1}
    assert make_plan(with_changes({"vllm": off}), project="p", stack="s").fit.host_parts == ()


def test_the_repaired_memory_is_enough():
    (problem,) = problems_of({"vllm": {"kv-offloading-size": 14}})
    assert "raise bezel:resources.memory to 20Gi" in problem.repair
    larger = {"resources": {"cpu": 8, "memory": "20Gi"}, "cost": {"max_hourly_usd": 2}}
    assert make_plan(with_changes({"vllm": {"kv-offloading-size": 14}, **larger}), project="p", stack="s").fit.starts


def test_a_connector_of_the_cache_is_counted_as_the_option():
    assert read_host_options(offloading(9)).kv_bytes == 9 * GIB
    assert read_host_options({"kv-transfer-config": SIMPLE}).kv_bytes == 8 * GIB
    rank = {**SIMPLE, "kv_connector_extra_config": {"cpu_bytes_to_use_per_rank": GIB}}
    assert read_host_options({"kv-transfer-config": rank}, 4).kv_bytes == 4 * GIB
    inner = [offloading(2)["kv-transfer-config"], SIMPLE]
    several = {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": inner}}
    assert read_host_options({"kv-transfer-config": several}).kv_bytes == 10 * GIB
    (problem,) = problems_of({"vllm": offloading(64), **TRUSTED})
    assert problem.key == "bezel:vllm.kv-transfer-config"


def test_what_takes_an_unknown_amount_is_said_to_be_not_checked():
    unknown = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    options = read_host_options(
        {"kv-transfer-config": unknown, "ec-transfer-config": {"ec_connector": "ECCPUConnector"}}
    )
    assert options.not_checked == (
        "host memory of kv_connector NixlConnector",
        "host memory of ec_connector ECCPUConnector",
    )
    assert read_host_options(offloading(1)).not_checked == ()


def test_the_cache_of_another_server_is_refused():
    (problem,) = problems_of({"vllm": {"kv-offloading-size": 4, "kv-offloading-backend": "lmcache"}})
    assert problem.key == "bezel:vllm.kv-offloading-backend"
    native = {"kv-offloading-size": 4, "kv-offloading-backend": "native"}
    assert make_plan(with_changes({"vllm": native}), project="p", stack="s").fit.starts


def test_a_part_of_a_layer_of_unknown_size_is_refused():
    (problem,) = problems_of({"vllm": {"offload-group-size": 12, "offload-params": ["mlp"]}})
    assert problem.key == "bezel:vllm.offload-params"


def test_groups_of_layers_free_the_gpu_less_the_buffers():
    assert [LayerGroups(8, 2, 1).count(layers) for layers in (7, 8, 48)] == [1, 2, 12]
    moved = make_plan(with_changes({"vllm": {"offload-group-size": 6}}), project="p", stack="s").fit
    (part,) = moved.host_parts
    assert 0 < moved.offloaded_bytes < part.asked_bytes
    assert part.needed_bytes == int(part.asked_bytes * PINNED_FACTOR)
    both = {"offload-group-size": 12, "cpu-offload-gb": 2}
    assert [part.option for part in make_plan(with_changes({"vllm": both}), project="p", stack="s").fit.host_parts] == [
        "offload-group-size"
    ]
    uva = make_plan(with_changes({"vllm": {**both, "offload-backend": "uva"}}), project="p", stack="s").fit
    assert [part.option for part in uva.host_parts] == ["cpu-offload-gb"]


def test_each_further_api_server_is_a_process():
    plan = make_plan(with_changes({"vllm": {"api-server-count": 3}}), project="p", stack="s")
    assert plan.fit.host_parts[0].needed_bytes == 2 * API_SERVER_BYTES


def plan_of_lease(vllm, name="gce-l4x8", **changes):
    config = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text(encoding="utf-8"))["config"]
    settings = {key.removeprefix("bezel:"): value for key, value in config.items() if key.startswith("bezel:")}
    row = {
        "item": "g2-standard-96",
        "region": "us-central1",
        "usd_per_unit": 0.001,
        "as_of": "2026-11",
        "source": "a test",
    }
    settings["cost"] = settings.get("cost", {}) | ({"prices": [row]} if name == "gce-l4x8" else {})
    settings["vllm"] = settings.get("vllm", {}) | vllm
    return make_plan(settings | changes, project="bezel-local", stack=name)


def test_a_leased_machine_is_held_to_its_own_memory():
    assert plan_of_lease({"kv-offloading-size": 64}).fit.host_parts
    with pytest.raises(PlanError) as caught:
        plan_of_lease({"kv-offloading-size": 400})
    problems = {problem.key: problem for problem in caught.value.problems}
    assert set(problems) == {"bezel:vllm.kv-offloading-size"}
    assert "resources.memory" not in str(caught.value)
    assert "Cloud Run" not in problems["bezel:vllm.kv-offloading-size"].consequence


def test_shared_memory_of_a_leased_machine_bounds_the_cache():
    with pytest.raises(PlanError, match="Insufficient space in /dev/shm"):
        plan_of_lease({"kv-offloading-size": 200})
    assert plan_of_lease({"kv-offloading-size": 190}).fit.starts


@pytest.mark.parametrize("option", ["cpu-offload-gb", "offload-group-size", "kv-offloading-size"])
def test_what_needs_cuda_is_refused_on_a_tpu(option):
    assert plan_of_lease({option: 0}, "v6e1-12b")
    with pytest.raises(PlanError) as caught:
        plan_of_lease({option: 4}, "v6e1-12b")
    assert [problem.key for problem in caught.value.problems] == [f"bezel:vllm.{option}"]


def test_a_leased_machine_has_no_draft_model_of_the_bucket():
    model_id = plan_of_lease({}).model
    assistant = model(model_id).assistant
    draft = {"spec-method": "mtp", "spec-tokens": 3}
    folder = f"/var/lib/bezel/models/{assistant.rsplit('/', 1)[-1]}"
    with pytest.raises(PlanError, match="only the model's own folder is copied"):
        plan_of_lease({**draft, "spec-model": folder})
    hub = {"weights": {"loading": "hub"}, "network": {"nat": True}}
    assert plan_of_lease({**draft, "spec-model": assistant}, **hub).fit.draft_bytes == model(model_id).assistant_bytes
    assert plan_of_lease({"spec-method": "ngram", "spec-tokens": 3}).gain


def test_weights_are_read_ahead_only_beside_what_stays_in_the_hosts_memory():
    config = yaml.safe_load((ROOT / "Pulumi.l4-31b-qat.yaml").read_text(encoding="utf-8"))["config"]
    settings = {key.removeprefix("bezel:"): value for key, value in config.items()}
    lazy = make_plan(settings, project="p", stack="s")
    assert lazy.service.weights.loading == "fuse"
    less = settings | {"vllm": settings["vllm"] | {"cpu-offload-gb": 4}}
    assert make_plan(less, project="p", stack="s").service.weights.loading == "fuse-prefetch"
