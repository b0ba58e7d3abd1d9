"""Options that put more than text into a stream: token ids, probabilities, the prompt; and what they leave alone."""

from __future__ import annotations

import pytest

from simulated_vllm_support.samples import events

PLAIN = ("/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=4096")
CHAT = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "max_tokens": 3, "ignore_eos": True}
TEXT = {"prompt": "def main():", "temperature": 0, "max_tokens": 3, "ignore_eos": True}


@pytest.fixture(scope="module")
def plain(serve):
    with serve(*PLAIN, speed=200.0) as client:
        yield client


@pytest.fixture(scope="module")
def drafting(serve):
    arguments = ("--reasoning-parser=gemma4", "--spec-model=/mnt/models/tiny-assistant", "--spec-tokens=3")
    with serve(*PLAIN, *arguments, speed=200.0) as client:
        yield client


def chat(client, **more):
    response = client.post("/v1/chat/completions", json=CHAT | more)
    assert response.status_code == 200, response.text
    return events(response.text) if more.get("stream") else response.json()


def text(client, **more):
    response = client.post("/v1/completions", json=TEXT | more)
    assert response.status_code == 200, response.text
    return events(response.text) if more.get("stream") else response.json()


def test_token_ids_of_a_chat_are_given_when_asked_for(plain):
    answer = chat(plain, return_token_ids=True)
    asked = plain.post("/tokenize", json={"messages": CHAT["messages"]}).json()["tokens"]
    ids = answer["choices"][0]["token_ids"]
    assert (answer["prompt_token_ids"], len(ids)) == (asked, 3)
    role, *chunks, _ = chat(plain, return_token_ids=True, stream=True)
    assert role["prompt_token_ids"] == asked
    assert [chunk["choices"][0]["token_ids"] for chunk in chunks] == [[token] for token in ids]


def test_token_ids_of_a_chat_are_null_otherwise(plain):
    answer = chat(plain)
    assert answer["prompt_token_ids"] is answer["choices"][0]["token_ids"] is None
    role, *chunks, _ = chat(plain, stream=True)
    assert role["prompt_token_ids"] is None
    assert {chunk["choices"][0]["token_ids"] for chunk in chunks} == {None}


def test_token_ids_of_a_completion_are_given_when_asked_for(plain):
    choice = text(plain, return_token_ids=True)["choices"][0]
    asked = plain.post("/tokenize", json={"prompt": TEXT["prompt"]}).json()["tokens"]
    assert (choice["prompt_token_ids"], len(choice["token_ids"])) == (asked, 3)
    *chunks, _ = text(plain, return_token_ids=True, stream=True)
    assert [chunk["choices"][0]["token_ids"] for chunk in chunks] == [[token] for token in choice["token_ids"]]
    *chunks, _ = text(plain, stream=True)
    assert {chunk["choices"][0]["token_ids"] for chunk in chunks} == {None}


def test_streamed_probabilities_are_those_of_the_whole_answer(plain):
    whole = chat(plain, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]
    role, *chunks, _ = chat(plain, logprobs=True, top_logprobs=2, stream=True)
    assert role["choices"][0]["logprobs"] is None
    rows = [chunk["choices"][0]["logprobs"]["content"] for chunk in chunks]
    assert [row for part in rows for row in part] == whole
    assert [len(row["top_logprobs"]) for row in whole] == [2] * 3
    assert all(row["token"].encode() == bytes(row["bytes"]) for row in whole)
    assert all(row["top_logprobs"][0]["logprob"] == row["logprob"] for row in whole)


def test_streamed_probabilities_of_a_completion_go_on_where_they_stopped(plain):
    whole = text(plain, logprobs=2)["choices"][0]["logprobs"]
    *chunks, _ = text(plain, logprobs=2, stream=True)
    parts = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    for key in ("text_offset", "token_logprobs", "tokens", "top_logprobs"):
        assert [value for part in parts for value in part[key]] == whole[key], key
    assert whole["text_offset"] == [0, *(sum(map(len, whole["tokens"][:at])) for at in (1, 2))]
    assert "".join(whole["tokens"]) == text(plain)["choices"][0]["text"]


def test_an_echoed_prompt_stands_before_the_text_and_moves_its_offsets(plain):
    echoed, bare = (text(plain, echo=echo, logprobs=1)["choices"][0] for echo in (True, False))
    assert echoed["text"] == TEXT["prompt"] + bare["text"]
    echoed_logprobs, bare_logprobs = echoed["logprobs"], bare["logprobs"]
    count = len(bare_logprobs["tokens"])
    assert (
        echoed_logprobs["text_offset"][0],
        echoed_logprobs["token_logprobs"][0],
        echoed_logprobs["top_logprobs"][0],
    ) == (0, None, None)
    assert "".join(echoed_logprobs["tokens"][:-count]) == TEXT["prompt"]
    assert [offset - len(TEXT["prompt"]) for offset in echoed_logprobs["text_offset"][-count:]] == bare_logprobs[
        "text_offset"
    ]
    assert echoed_logprobs["tokens"][-count:] == bare_logprobs["tokens"]


def test_an_echoed_prompt_is_streamed_once_for_each_choice(plain):
    *chunks, _ = text(plain, echo=True, stream=True, prompt=["ab cd", "ef"])
    first = {}
    for chunk in chunks:
        choice = chunk["choices"][0]
        assert (choice["prompt_token_ids"] is None) == (choice["index"] in first)
        first.setdefault(choice["index"], choice)
    assert {
        index: choice["text"].startswith(text)
        for (index, choice), text in zip(sorted(first.items()), ["ab cd", "ef"], strict=True)
    } == {0: True, 1: True}
    whole = plain.post("/tokenize", json={"prompt": "ab cd"}).json()["tokens"]
    assert first[0]["prompt_token_ids"] == whole


def test_every_choice_of_a_stream_is_opened_before_any_has_text(plain):
    chunks = chat(plain, n=3, temperature=1, seed=1, stream=True, stream_options={"include_usage": True})
    opened = [chunk["choices"][0] for chunk in chunks[:3]]
    assert [(choice["index"], choice["delta"]) for choice in opened] == [
        (index, {"role": "assistant", "content": ""}) for index in range(3)
    ]
    rest = [chunk["choices"][0] for chunk in chunks[3:-2]]
    assert sorted(choice["index"] for choice in rest) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert sum(choice["finish_reason"] == "length" for choice in rest) == 3
    assert chunks[-2]["usage"]["completion_tokens"] == 9


def test_continuous_usage_counts_each_choice_and_the_last_all(plain):
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = chat(plain, n=2, temperature=1, seed=1, stream=True, stream_options=options)
    for index in range(2):
        counts = [chunk["usage"] for chunk in chunks[:-2] if chunk["choices"][0]["index"] == index]
        assert [count["completion_tokens"] for count in counts] == [0, 1, 2, 3]
        assert all(count["total_tokens"] == count["prompt_tokens"] + count["completion_tokens"] for count in counts)
    assert chunks[-2]["usage"]["completion_tokens"] == 6


@pytest.mark.parametrize("options", [{}, {"include_usage": False}, {"continuous_usage_stats": True}])
def test_usage_is_in_a_stream_only_when_asked_for(plain, options):
    chunks = text(plain, stream=True, stream_options=options)
    assert not [chunk for chunk in chunks[:-1] if "usage" in chunk]
    assert "system_fingerprint" in chunks[-2]
    assert not [chunk for chunk in chunks[:-2] if "system_fingerprint" in chunk]


@pytest.mark.slow
def test_a_server_can_be_set_to_send_usage_always(serve):
    with serve(*PLAIN, "--enable-force-include-usage", speed=200.0) as client:
        assert text(client, stream=True)[-2]["usage"]["completion_tokens"] == 3


@pytest.mark.slow
def test_a_chunk_with_the_end_of_a_thought_and_text_is_two(drafting):
    """Several tokens come at once where tokens are drafted; thoughts and text never share an event."""
    ends = 0
    for seed in range(12):
        body = {"seed": seed, "temperature": 1, "max_tokens": 800, "ignore_eos": False, "logprobs": True}
        chunks = chat(drafting, **body, chat_template_kwargs={"enable_thinking": True}, stream=True)[1:-1]
        rows = [len(chunk["choices"][0]["logprobs"]["content"]) for chunk in chunks if chunk["choices"][0]["logprobs"]]
        kinds = [list(chunk["choices"][0]["delta"]) for chunk in chunks]
        assert all(len(kind) <= 1 for kind in kinds)
        bare = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["logprobs"] is None]
        assert all(list(choice["delta"]) == ["reasoning"] for choice in bare)
        unsaid = {"logprobs": None, "finish_reason": None, "token_ids": None}
        assert all(choice == {"index": 0, "delta": choice["delta"], **unsaid} for choice in bare)
        ends += len(bare)
        assert sum(rows) > 40
    assert ends


def test_a_stop_string_ends_a_stream_and_is_named_in_its_last_chunk(plain):
    whole = text(plain, max_tokens=30)["choices"][0]["text"]
    stop = whole.split()[5]
    *chunks, _ = text(plain, max_tokens=30, stop=[stop], stream=True)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole[: whole.index(stop)]
    last = chunks[-1]["choices"][0]
    assert (last["finish_reason"], last["stop_reason"]) == ("stop", stop)
    assert {chunk["choices"][0]["stop_reason"] for chunk in chunks[:-1]} == {None}


def test_an_answer_that_ends_by_itself_closes_with_a_chunk_without_text(plain):
    *chunks, _ = chat(plain, max_tokens=700, ignore_eos=False, stream=True)
    assert chunks[-1]["choices"][0]["delta"] == {"content": ""}
    assert (chunks[-1]["choices"][0]["finish_reason"], chunks[-1]["choices"][0]["stop_reason"]) == ("stop", None)


@pytest.mark.slow
def test_the_ids_of_a_stream_are_one(plain):
    for chunks, prefix in ((chat(plain, stream=True), "chatcmpl-"), (text(plain, stream=True), "cmpl-")):
        assert {chunk["id"].startswith(prefix) for chunk in chunks[:-1]} == {True}
        assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks[:-1]}) == 1


@pytest.mark.slow
def test_a_prompt_of_more_token_ids_than_fit_is_refused(plain):
    assert plain.post("/v1/completions", json=TEXT | {"prompt": [300] * 4090}).status_code == 200
    refused = plain.post("/v1/completions", json=TEXT | {"prompt": [300] * 4097})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input_tokens")


@pytest.mark.slow
def test_a_given_request_id_is_used(plain):
    assert chat(plain, request_id="mine")["id"] == "chatcmpl-mine"
    assert chat(plain, stream=True, request_id="mine")[0]["id"] == "chatcmpl-mine"


@pytest.mark.slow
def test_text_in_a_stream_is_escaped_as_json_is(plain):
    """Quotes, line feeds and characters beyond ASCII stand in a stream as in the recorded answers."""
    odd = 'say "é€"\n\t\\'
    body = {"structured_outputs": {"choice": [odd]}, "max_tokens": 60, "ignore_eos": False, "stream": True}
    response = plain.post("/v1/chat/completions", json=CHAT | body)
    *chunks, _ = events(response.text)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == odd
    assert "é" in response.text
    assert "\\u00e9" not in response.text
