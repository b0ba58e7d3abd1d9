"""Generated requests: what a real vLLM answered to them, the simulated one answers in status and shape."""

from __future__ import annotations

import contextlib
import json
from collections import Counter

import httpx
import pytest

from bezel_simulated_vllm.api.validation.recorded import fields
from bezel_simulated_vllm.release import DEFAULT_RELEASE
from simulated_vllm_support import replayed
from simulated_vllm_support.generated import BASES, constant_fields, fields_of, generate
from simulated_vllm_support.shapes import alike, shape_of

BODIES = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completion",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/tokenize": "tokenize",
    "/detokenize": "detokenize",
    "/generative_scoring": "scoring",
}


def ask(client, request):
    text = ""
    headers = {"content-type": "application/json"}
    with client.stream("POST", request.path, content=json.dumps(request.body), headers=headers) as response:
        with contextlib.suppress(httpx.RemoteProtocolError):
            for part in response.iter_text():
                text += part
            return shape_of(response.status_code, text)
        return shape_of(response.status_code, text + replayed.CUT)


@pytest.mark.slow
def test_recorded_requests_are_answered_as_by_the_real_server(servers):
    client = servers("generated")
    wrong = []
    for request, real in replayed.read():
        answer = ask(client, request)
        if not alike(real, answer) and not replayed.is_explained(request, real, answer):
            wrong.append((request, real, answer))
    assert wrong == []


def test_the_recorded_requests_have_every_field():
    """Half of them are answered, and many are refused."""
    answers = replayed.read()
    assert len(answers) >= 300
    assert {request.kind for request, _ in answers} == {f"{path} {name}" for path in BASES for name in fields_of(path)}
    statuses = Counter(shape[0] for _, shape in answers)
    assert statuses[200] >= len(answers) / 2
    assert statuses[400] > 50


@pytest.mark.slow
def test_two_thousand_requests_vary_every_field():
    requests = generate(2000)
    assert len({json.dumps([one.path, one.body], sort_keys=True) for one in requests}) == 2000
    assert list(constant_fields(requests)) == []
    assert list(constant_fields(requests[:1])) != []
    assert generate(20) == requests[:20]


@pytest.mark.parametrize(("path", "name"), BODIES.items())
def test_the_recorded_model_has_the_fields_of_the_published_document(path, name):
    assert set(fields(name, DEFAULT_RELEASE)) == set(fields_of(path))


ANSWER = '{"id":"a","choices":[{"text":"b","n":1}]}'


@pytest.mark.parametrize(
    ("status", "text"),
    [(400, ANSWER), (200, ANSWER.replace('"n"', '"m"')), (200, ANSWER.replace("1", "null")), (200, "data: [DONE]\n\n")],
)
def test_another_shape_is_noticed(status, text):
    assert alike(shape_of(200, ANSWER), shape_of(200, ANSWER.replace('"b"', '"c"')))
    assert not alike(shape_of(200, ANSWER), shape_of(status, text))


def test_another_message_of_a_refusal_is_noticed():
    refusal = '{"error":{"message":"%s","type":"BadRequestError","param":null,"code":400}}'
    assert not alike(shape_of(400, refusal % "a"), shape_of(400, refusal % "b"))
