"""Each recorded answer of a real vLLM 0.32.0 against the server under test, field by field and header by header.

The server under test is the simulated one, or a real one (`tools/vllm/contract.py`): both pass the same tests.
"""

from __future__ import annotations

import json
import re

import pytest

from simulated_vllm_support.compare import compare
from simulated_vllm_support.contract_report import RESULTS
from simulated_vllm_support.contract_table import MORE, ROWS
from simulated_vllm_support.samples import events, sample, text_of
from simulated_vllm_support.servers import real_url

COMPARED = [(row.configuration, name) for name, row in ROWS.items() if row.compared]
STREAMS = [(server, name) for server, name in COMPARED if "test_a_stream_is_framed_as_recorded" in ROWS[name].tests]


def ask(client, recorded):
    return client.request(recorded.method, recorded.path, content=recorded.body or None, headers=recorded.asked)


@pytest.mark.slow
@pytest.mark.parametrize(("configuration", "name"), COMPARED)
def test_an_answer_is_the_recorded_one(servers, record_property, configuration, name):
    response = ask(servers(configuration), sample(name))
    # A real server on a busy machine puts tokens that have waited for their client into one chunk.
    merged = configuration == "keyed" or real_url() is not None
    comparison = compare(sample(name), response, free=ROWS[name].free, merged=merged)
    reasons = " ".join(sorted(comparison.explained))
    record_property("explained", reasons)
    assert comparison.wrong == []
    assert comparison.equal > 5
    if RESULTS.exists() and not real_url():
        committed = {row[0]: row[4] for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]}
        assert committed.get(name, reasons).startswith(reasons), f"tools/vllm/contract.py --record: {reasons}"


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_a_further_answer_is_the_recorded_one(servers, name):
    recorded = sample(name)
    comparison = compare(recorded, ask(servers("parsers"), recorded), merged=True)
    assert comparison.wrong == []
    assert comparison.equal > 5


@pytest.mark.parametrize(("configuration", "name"), STREAMS)
def test_a_stream_is_framed_as_recorded(servers, configuration, name):
    text = ask(servers(configuration), sample(name)).text
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    *chunks, done = (block.removeprefix("data: ") for block in blocks)
    assert done == "[DONE]"
    # Compact JSON: no space after a comma or a colon outside of a text.
    assert all(json.dumps(json.loads(chunk), separators=(",", ":"), ensure_ascii=False) == chunk for chunk in chunks)


def test_more_output_than_fits_is_cut_to_what_fits(servers):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 510, "ignore_eos": True}
    answer = servers("small").post("/v1/chat/completions", json=body).json()
    assert answer["usage"]["total_tokens"] == 512
    assert answer["choices"][0]["finish_reason"] == "length"


def test_an_answer_of_a_given_form_has_it(servers):
    asked = json.loads(sample("structured-json").body) | {"max_tokens": 400, "temperature": 0}
    choice = servers("small").post("/v1/chat/completions", json=asked).json()["choices"][0]
    text = re.sub(r"\s", "", choice["message"]["content"])
    # A real model without sense may pad with blanks up to its limit; what it has written is the form's beginning.
    assert any(form.startswith(text) for form in ('{"ok":true}', '{"ok":false}'))
    assert text.endswith("}") or choice["finish_reason"] == "length"


@pytest.mark.slow
@pytest.mark.parametrize("configuration", ["plain", "plain-dead", "keyed"])
def test_the_description_is_the_recorded_one_for_what_is_served(servers, configuration):
    recorded = sample("openapi")
    response = servers(configuration).get("/openapi.json")
    assert [name for name in response.headers if name != "connection"] == [name for name, _ in recorded.headers]
    whole, served = recorded.json, response.json()
    assert set(whole["paths"]) == set(served["paths"])
    assert served["paths"] == {path: item for path, item in whole["paths"].items() if path in served["paths"]}
    schemas = whole["components"]["schemas"]
    assert served["components"]["schemas"] == {name: schemas[name] for name in served["components"]["schemas"]}
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', response.text))
    assert referred <= set(served["components"]["schemas"])
    assert (served["openapi"], served["info"]) == (whole["openapi"], whole["info"])


def test_a_drafting_server_puts_several_tokens_into_a_chunk(servers):
    recorded = events(text_of("completions-stream-specdecode-multi-token-chunks"))
    body = {"prompt": "def main():", "max_tokens": 64, "ignore_eos": True, "stream": True, "temperature": 0}
    client = servers("mtp")
    response = client.post("/v1/completions", json=body | {"stream_options": {"include_usage": True}})
    *chunks, last, done = events(response.text)
    assert last["usage"]["completion_tokens"] == 64
    assert len(chunks) <= 64
    assert [list(chunk) for chunk in (chunks[0], last)] == [list(chunk) for chunk in (recorded[0], recorded[-2])]
    assert list(chunks[0]["choices"][0]) == list(recorded[0]["choices"][0])
    assert done == recorded[-1] == "[DONE]"
    counter = r"^vllm:spec_decode_num_accepted_tokens_total\{.*\} (\S+)$"
    accepted = float(re.search(counter, client.get("/metrics").text, re.MULTILINE)[1])
    # Each accepted token is one that has no chunk of its own.
    assert (len(chunks) < 64) == (accepted > 0)


def test_without_drafting_a_chunk_holds_one_token(servers):
    body = {"prompt": "def main():", "max_tokens": 30, "ignore_eos": True, "stream": True, "temperature": 0}
    assert servers("plain").post("/v1/completions", json=body).text.count("data: {") == 30


def test_more_requests_than_the_queue_takes_are_refused_and_fewer_are_not(servers):
    client, body = servers("small"), {"prompt": "a", "max_tokens": 2, "ignore_eos": True}
    assert client.post("/v1/completions", json=body | {"n": 4}).status_code == 200


def test_a_full_queue_is_refused_as_recorded(servers):
    recorded = text_of("err-overload-queue-full").partition("\n\n")[2].strip()
    client, name = servers("small"), "vllm:admission_rejections_total"
    before = rejections(client.get("/metrics").text)
    response = client.post("/v1/completions", json={"prompt": "a", "max_tokens": 400, "ignore_eos": True, "n": 5})
    assert (response.status_code, response.reason_phrase, response.text) == (503, "Service Unavailable", recorded)
    text = client.get("/metrics").text
    assert rejections(text) > before
    assert f'{name}{{model_name="tiny-gemma4",reason="max_num_queued_tokens"}} 0.0' in text


def rejections(text: str) -> float:
    label = r'vllm:admission_rejections_total\{model_name="tiny-gemma4",reason="max_num_queued_reqs"\} (\S+)'
    return float(re.search(label, text)[1])


@pytest.mark.slow
def test_a_key_is_asked_for_where_it_was(servers):
    """The recording is a list of paths, each without a key and then with a wrong one."""
    blocks = re.split(r"\n\n(?=-H| /)", text_of("err-apikey"))
    asked = 0
    for block in blocks:
        head, _, body = block.strip("\n").partition("\n\n")
        first, *answer_head = head.strip().split("\n")
        key = {"authorization": "Bearer wrong"} if first.startswith("-H") else {"authorization": ""}
        if not answer_head:
            continue  # cut off when it was recorded
        status, *headers = answer_head
        response = servers("keyed").get(first.split()[-1], headers=key)
        assert f"HTTP/1.1 {response.status_code} {response.reason_phrase}" == status
        assert [name for name in response.headers if name != "connection"] == [
            line.partition(":")[0] for line in headers
        ]
        if body.startswith("{"):
            assert response.text == body.strip()
        asked += 1
    assert asked == 9


def test_the_right_key_opens(servers):
    assert servers("keyed").get("/v1/models").status_code == 200


UNGUARDED = {
    "/scale_elastic_ep": {},
    "/generative_scoring": {"model": "tiny-gemma4", "messages": [], "prompt": "x", "n": 1},
}


def test_the_unguarded_routes_answer_without_a_key(servers):
    lines = [line for line in text_of("apikey-unprotected-routes").splitlines() if line]
    usual = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    for line in lines:
        path, status, start = line.split(" ", 2)
        response = servers("keyed").post(path, json=UNGUARDED.get(path, usual), headers={"authorization": ""})
        assert response.status_code == int(status), path
        if int(status) >= 400:
            assert response.text.startswith(start[:150]), path
        else:
            assert list(response.json())[:3] == re.findall(r'"(\w+)":', start)[:3]
