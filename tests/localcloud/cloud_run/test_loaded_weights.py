"""The twin loads its model by each way that a plan knows, and ends as the real server does where there is none."""

import itertools

import pytest

from bezel.planner import make_plan
from bezel.planner.vllm.loading import LOADINGS
from bezel_localcloud import control, seed
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.client import REGION, SERVICES, Client
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow

SETTINGS = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": REGION}
NUMBERS = itertools.count()
ASSISTANT = "google/gemma-4-12B-it-assistant"
FOLDER = "gemma-4-12B-it-assistant"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    directory = tmp_path_factory.mktemp("loaded")
    endpoint = warm_localcloud.start(directory, "--speed", "10000")
    client = Client(endpoint)
    client.prepare()
    for folder, model in (("m", SETTINGS["model"]), (FOLDER, ASSISTANT)):
        seed.seed(endpoint, "models", folder, synthetic_weights.model_files(model))
    assert client.post("/storage/v1/b", {"name": "closed", "location": "US"}, project="bezel-local").is_success
    yield client
    control.stop(directory)


def planned_service(loading, **vllm):
    weights = {"loading": loading} | ({} if loading == "hub" else {"bucket": "models", "path": "m"})
    return make_plan(SETTINGS | {"weights": weights, "vllm": vllm}, project="bezel-local", stack="s").service


def template(client, service, *arguments):
    changes = {}
    if service.weights.mount_path:
        changes["volumeMounts"] = [{"name": "weights", "mountPath": service.weights.mount_path}]
        changes["volumes"] = [{"name": "weights", "gcs": {"bucket": "models", "readOnly": True}}]
    environment = [{"name": name, "value": value} for name, value in service.environment.items()]
    return client.template(*(arguments or service.arguments), env=environment, **changes)


def deploy_once(client, made):
    """The operation of a deploy, and what the instance said; the service is gone afterwards."""
    name = f"loaded-{next(NUMBERS)}"
    operation = client.create(name, made)
    log_text = "\n".join(entry.get("textPayload", "") for entry in client.log(name, 'textPayload:""'))
    client.finish("run/v2", client.delete(f"{SERVICES}/{name}"))
    return operation, log_text


@pytest.mark.wide_except("fuse-prefetch", "runai-streamer")
@pytest.mark.parametrize("loading", LOADINGS)
def test_the_argument_list_of_each_way_starts(client, loading):
    draft = {"hub": ASSISTANT, "runai-streamer": f"gs://models/{FOLDER}"}.get(loading, f"/mnt/models/{FOLDER}")
    service = planned_service(loading, **{"spec-method": "mtp", "spec-model": draft, "spec-tokens": 3})
    operation, log_text = deploy_once(client, template(client, service))
    assert "error" not in operation, log_text
    assert ("Time spent downloading weights" in log_text) is (loading == "hub")


def replace_arguments(service, *pairs):
    arguments = list(service.arguments)
    for old, new in pairs:
        arguments = [word.replace(old, new) for word in arguments]
    return arguments


@pytest.mark.wide_except("runai-streamer-change0-*", "hub-*")
@pytest.mark.parametrize(
    ("loading", "change", "says"),
    [
        ("runai-streamer", ("gs://models/m", "gs://closed/m"), "'storage.objects.list' denied"),
        ("runai-streamer", ("gs://models/m", "gs://models/none"), "Invalid repository ID or local directory"),
        ("runai-streamer", ("runai_streamer", "safetensors"), "To load a model from object storage"),
        ("runai-streamer", ("memory_limit", "memory"), "Unexpected extra config keys for runai_streamer"),
        ("hub", ("google/gemma-4-12B", "google/gemma-9-12B"), "is not a valid model identifier"),
    ],
)
def test_what_cannot_be_loaded_ends_the_start_with_its_reason(client, loading, change, says):
    service = planned_service(loading)
    operation, log_text = deploy_once(client, template(client, service, *replace_arguments(service, change)))
    assert "error" in operation
    assert says in log_text


def test_a_service_that_may_not_go_to_the_hub_finds_no_model_there(client):
    service = planned_service("hub")
    made = template(client, service)
    made["containers"][0]["env"].append({"name": "HF_HUB_OFFLINE", "value": "1"})
    operation, log_text = deploy_once(client, made)
    assert "error" in operation
    assert "Cannot find an appropriate cached snapshot folder" in log_text
