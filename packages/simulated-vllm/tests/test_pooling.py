"""Servers of models that pool, beside what a real vLLM for CPUs answered for tiny models of the same configurations.

`fixtures/pooling/0.32.0.json` has each call with its status and, of an answer, the form: names of keys, types,
lengths of lists. `requests-*.json.gz` has whole requests of each release (`tools/vllm/releases/pooled.py`).
"""

import base64
import http.client
import json
import struct
from pathlib import Path

import pytest

from bezel_catalog.vllm.servers import recorded_servers
from bezel_simulated_vllm.api.routes.pooling_numbers import octets_of, packed_bits
from simulated_vllm_support import pooled_requests
from simulated_vllm_support.client_requests import answer_shape
from simulated_vllm_support.shapes import alike

ARGUMENTS = ("--dtype=bfloat16", "--enforce-eager", "--max-num-seqs=64", "--max-model-len=512")
FIXTURE = Path(__file__).with_name("fixtures") / "pooling" / "0.32.0.json"
MODELS = json.loads(FIXTURE.read_text(encoding="utf-8"))["models"]
# The recorded models have no template for messages; the simulated server's always have one.
NO_TEMPLATE = "default chat template is no longer allowed"
# Texts that differ: a literal is refused once for each form of a body, and names of Python's classes are left out.
NOT_COMPARED = ("literal_error", "Cannot find suitable handler")
# Lengths that depend on the tokenizer.
PER_TOKEN = ("tokens",)
ENCODER = {
    "model_type": "bert",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 512,
    "vocab_size": 2048,
}
DECODER = {
    **ENCODER,
    "model_type": "llama",
    "num_key_value_heads": 1,
    "head_dim": 32,
    "architectures": ["LlamaForCausalLM"],
}


@pytest.fixture(scope="module")
def model_path(mount):
    """Write a model's files and return its path in the container."""

    def write(name, config, **files):
        directory = mount / name
        directory.mkdir(exist_ok=True)
        (directory / "config.json").write_text(json.dumps(config))
        (directory / "model.safetensors").write_bytes(b"\0" * 400_000)
        for file, content in files.items():
            (directory / f"{file}.json").write_text(json.dumps(content))
        return f"/mnt/models/{name}"

    return write


def form_of(value):
    """Names of keys, types and lengths, as the fixture has them."""
    if isinstance(value, dict):
        return {key: form_of(each) for key, each in value.items()}
    if isinstance(value, list):
        return {"length": len(value), "each": form_of(value[0])} if value else []
    return value if isinstance(value, bool) or value is None else type(value).__name__


def without_lengths(form):
    """A form without the number of tokens."""
    if not isinstance(form, dict):
        return form
    return {key: without_lengths(each) for key, each in form.items() if key != "length"}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_server_answers_as_the_recorded_one(name, model_path, serve):
    row = MODELS[name]
    path = model_path(f"pooled-{name}", row["config"])
    differing = []
    with serve(path, "--served-model-name=tiny") as client:
        for where, body, status, content in row["calls"]:
            if NO_TEMPLATE in json.dumps(content):
                continue
            response = client.post(where, json=body)
            if response.status_code != status:
                differing.append((where, body, status, response.text))
            elif status == 200:
                form = form_of(response.json())
                same = without_lengths(form) == without_lengths(content) if name in PER_TOKEN else form == content
                if not same:
                    differing.append((where, body, content, form))
            elif not any(text in json.dumps(content) for text in NOT_COMPARED) and not is_same_error(
                response.json(), content
            ):
                differing.append((where, body, content, response.text))
        served = set(client.get("/openapi.json").json()["paths"])
    assert differing == []
    assert served >= {path for path in row["paths"] if path != "/v1/systemone"}


def is_same_error(answer, recorded):
    """Whether errors are equal, the order of a set of tasks and the list of aliases aside."""
    if "error" not in recorded:
        return answer == recorded
    texts = [
        each["error"]["message"].split("Supported tasks")[0].split(" Valid aliases")[0] for each in (answer, recorded)
    ]
    return texts[0] == texts[1] and answer["error"]["code"] == recorded["error"]["code"]


@pytest.mark.slow
@pytest.mark.parametrize("release", recorded_servers())
def test_whole_requests_are_answered_as_by_the_real_server(release, mount, serve):
    wrong = []
    for name, files, calls in pooled_requests.read(release):
        folder = mount / f"whole-{release}-{name}"
        folder.mkdir(exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        path = f"/mnt/models/{folder.name}"
        with serve(path, "--served-model-name=tiny", *ARGUMENTS, release=release) as client:
            for request, real in calls:
                answer = answer_shape(*ask(client.base_url.netloc.decode(), request))
                if not alike(real, answer):
                    wrong.append((name, request, real, answer))
    assert wrong == []


@pytest.mark.parametrize("release", recorded_servers())
def test_whole_requests_are_of_every_endpoint(release):
    rows = pooled_requests.read(release)
    paths = {request.path for _, _, calls in rows for request, shape in calls if shape[1] == 200}
    assert paths >= {"/v1/embeddings", "/pooling", "/classify", "/score", "/rerank", "/v1/rerank", "/v2/rerank"}
    assert {400, 404, 405} <= {shape[1] for _, _, calls in rows for _, shape in calls}
    assert sum(len(calls) for _, _, calls in rows) >= 200


def ask(address, request):
    """Status, type of the content, and body of an answer."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(request.method, request.path, request.content or None, dict(request.headers))
    response = connection.getresponse()
    answer = response.status, response.headers.get("content-type", ""), response.read().decode(errors="replace")
    connection.close()
    return answer


def test_bits_of_a_vector_are_packed_highest_first():
    vector = [0.5, -0.5, 0.5, 0.5, -0.5, -0.5, -0.5, -0.5]
    assert packed_bits(vector, signed=False) == [0b10110000]
    assert packed_bits(vector, signed=True) == [0b10110000 - 128]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("float32", "0000003f000080be"),
        ("float16", "003800b4"),
        ("bfloat16", "003f80be"),
        ("fp8_e4m3", "30a8"),
        ("fp8_e5m2", "38b4"),
    ],
)
def test_numbers_have_the_type_that_the_request_asks_for(kind, expected):
    assert octets_of([0.5, -0.25], kind, "little").hex() == expected
    swapped = octets_of([[0.5], [-0.25]], kind, "big")
    width = len(swapped) // 2
    assert (swapped[:width][::-1] + swapped[width:][::-1]).hex() == expected


def test_encoder_keeps_no_cache(model_path, settings):
    made = settings(model_path("encoder", {**ENCODER, "architectures": ["BertModel"]}))
    assert (made.memory.blocks, made.memory.tokens, made.memory.layout.block_bytes) == (1, 0, 0)
    assert not made.prefix_caching
    assert made.max_batched_tokens >= made.max_model_len


def test_decoder_that_pools_keeps_its_cache(model_path, settings):
    made = settings(model_path("decoder", DECODER), "--runner=pooling")
    assert made.pooling.convert == "embed"
    assert made.memory.tokens > 0
    assert made.prefix_caching


def test_metrics_count_prompts_and_no_generated_token(model_path, serve):
    with serve(
        model_path("counted", {**ENCODER, "architectures": ["BertModel"]}), "--served-model-name=tiny"
    ) as client:
        tokens = client.post("/v1/embeddings", json={"input": ["a b", "c"]}).json()["usage"]["prompt_tokens"]
        metrics = client.get("/metrics").text
    assert f'vllm:prompt_tokens_total{{engine="0",model_name="tiny"}} {tokens:.1f}' in metrics
    assert 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 0.0' in metrics
    assert 'finished_reason="stop",model_name="tiny"} 2.0' in metrics
    assert 'vllm:request_params_max_tokens_count{engine="0",model_name="tiny"} 0.0' in metrics


def test_modules_of_sentence_transformers_make_a_model_pool(model_path, serve):
    modules = [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    with serve(model_path("sentences", DECODER, modules=modules)) as client:
        assert client.post("/v1/embeddings", json={"input": "a"}).status_code == 200
        assert client.post("/v1/completions", json={"prompt": "a"}).status_code == 404


@pytest.mark.parametrize(("template", "status"), [({}, 400), ({"chat_template": "{{ messages }}"}, 200)])
def test_messages_need_a_template_where_the_tokenizer_is_real(template, status, model_path, serve):
    tokenizer = {"model": {"vocab": {f"token{number}": number for number in range(64)}}}
    config = {**ENCODER, "architectures": ["BertModel"]}
    path = model_path(f"template-{status}", config, tokenizer=tokenizer, tokenizer_config=template)
    with serve(path) as client:
        answer = client.post("/v1/embeddings", json={"messages": [{"role": "user", "content": "a"}]})
        assert client.post("/v1/embeddings", json={"input": "a"}).status_code == 200
    assert answer.status_code == status
    assert (NO_TEMPLATE in answer.text) == (status == 400)


def test_model_without_pooling_serves_no_embeddings(model_path, serve):
    with serve(model_path("generating", DECODER)) as client:
        assert client.post("/v1/embeddings", json={"input": "a"}).status_code == 404
        assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 1}).status_code == 200


def test_octets_hold_the_numbers_of_the_json(model_path, serve):
    with serve(model_path("octets", {**ENCODER, "architectures": ["BertModel"]})) as client:
        plain = client.post("/v1/embeddings", json={"input": "a"}).json()["data"][0]["embedding"]
        coded = client.post("/v1/embeddings", json={"input": "a", "encoding_format": "base64"}).json()
        octets = client.post("/v1/embeddings", json={"input": "a", "encoding_format": "bytes"})
    packed = base64.b64decode(coded["data"][0]["embedding"])
    assert packed == octets.content == struct.pack(f"={len(plain)}f", *plain)
    assert json.loads(octets.headers["metadata"])["data"][0]["shape"] == [len(plain)]
    assert sum(number * number for number in plain) == pytest.approx(1)
