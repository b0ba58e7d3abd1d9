"""The twin behind the front: the stack's own arguments decide how fast it is, how many it serves, what it refuses."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from bezel.planner import make_plan
from bezel_localcloud import control, seed
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.client import SERVICES, Client, until
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow

SPEED = 5  # of the engine's steps: figures below are in the engine's seconds
STACK = yaml.safe_load((Path(__file__).parents[2] / "Pulumi.l4-qat.yaml").read_text())["config"]
PLAN = make_plan({key.partition(":")[2]: value for key, value in STACK.items()}, project="bezel-local", stack="l4-qat")
PLACES = 8  # max-num-seqs of the stack


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    directory = tmp_path_factory.mktemp("twin")
    endpoint = warm_localcloud.start(directory, "--speed", "10000")
    client = Client(endpoint)
    client.prepare()
    seed.seed(endpoint, "models", PLAN.service.weights.path, synthetic_weights.model_files(PLAN.model))
    yield client
    control.stop(directory)


def template(client, *more, **probe):
    mount = {"name": "weights", "mountPath": PLAN.service.weights.mount_path}
    made = client.template(
        *PLAN.service.arguments,
        *more,
        env=[{"name": "LOCALCLOUD_SERVING_SPEED", "value": str(SPEED)}],
        volumeMounts=[mount],
        volumes=[{"name": "weights", "gcs": {"bucket": "models", "readOnly": True}}],
        maxInstanceRequestConcurrency=3 * PLACES,
    )
    planned = PLAN.service.startup_probe
    made["containers"][0]["startupProbe"] |= {
        "initialDelaySeconds": planned.initial_delay_seconds,
        "periodSeconds": planned.period_seconds,
        "failureThreshold": planned.failure_threshold,
    } | probe
    return made


@pytest.fixture(scope="module")
def front(client):
    operation = client.create("twin", template(client))
    assert "error" not in operation
    return client.front("twin")


def ask(front, prompt, output):
    """(seconds of the engine to the first token, to the last one)."""
    body = {"model": PLAN.served_model, "prompt": prompt, "max_tokens": output, "ignore_eos": True, "stream": True}
    began, times = time.monotonic(), []
    with front.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        times.extend((time.monotonic() - began) * SPEED for line in answer.iter_lines() if line.startswith("data: {"))
    return times[0], times[-1]


def metric(front, name):
    lines = front.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}{{"))


@pytest.mark.wide
def test_a_prompt_ten_times_as_long_takes_as_much_longer_as_its_arithmetic(front):
    before = metric(front, "time_to_first_token_seconds_sum")
    # No two begin alike, so that none is in the cache; of three the best, because a busy machine adds to each.
    short, long = ([ask(front, [n + count, *range(2, count + 1)], 1)[0] for n in range(3)] for count in (3000, 30_000))
    assert 8 < min(long) / min(short) < 14
    # Two operations a parameter and token, at a share of the L4's 121 Tflop/s: never more than all of it.
    least = 2 * 11.9e9 * 30_000 / 121e12
    assert least < min(long) < 4 * least
    counted = metric(front, "time_to_first_token_seconds_sum") - before
    assert counted == pytest.approx(sum(short + long), rel=0.25)


@pytest.mark.wide
def test_twice_as_many_users_as_places_show_as_waiting_and_in_latency(front):
    def levels():
        return metric(front, "num_requests_running"), metric(front, "num_requests_waiting")

    slowest = []
    for users in (PLACES, 2 * PLACES):
        prompts = [[users, user, *range(100)] for user in range(users)]
        with ThreadPoolExecutor(users) as pool:
            # Some seconds of serving: on a busy machine, too, there is a moment at which all of them are there.
            asked = [pool.submit(ask, front, prompt, 512) for prompt in prompts]
            until(lambda expected=(PLACES, users - PLACES): levels() == expected)
        slowest.append(max(one.result()[1] for one in asked))
    assert 1.6 < slowest[1] / slowest[0] < 2.6


def test_another_context_length_changes_refusals_and_reported_tokens(client, front):
    def refusal():
        answer = front.post("/v1/completions", json={"model": PLAN.served_model, "prompt": [7] * 5000, "max_tokens": 1})
        return answer.json().get("error", {}).get("message", "")

    def reported_tokens():
        lines = [entry["textPayload"] for entry in client.log("twin", 'textPayload:"GPU KV cache size"')]
        return lines[-1].partition("GPU KV cache size: ")[2].partition(" tokens")[0]

    long, tokens = refusal(), reported_tokens()
    assert "error" not in client.update("twin", template(client, "--max-model-len=4096"))
    assert (long, "maximum context length is 4096 tokens" in refusal()) == ("", True)
    assert reported_tokens() != tokens
    # As the other tests want it.
    assert "error" not in client.update("twin", template(client))


def test_a_startup_window_shorter_than_loading_takes_fails_the_revision(client, front):
    ready = client.service("twin")["latestReadyRevision"]
    short = {"initialDelaySeconds": 0, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 2}

    def failure():
        # A template that failed is refused again with the same words, and tried again only where that is asked for.
        update = client.patch(f"{SERVICES}/twin", {"template": template(client, **short)}, forceNewRevision="true")
        message = json.dumps(client.finish("run/v2", update)["error"])
        # The instances of the revisions before may still hold their GPUs.
        return "" if "Quota exceeded" in message else message

    message = until(failure, 60)
    assert "failed the configured startup probe checks" in message
    assert client.service("twin")["latestReadyRevision"] == ready
    assert front.get("/health").status_code == 200
