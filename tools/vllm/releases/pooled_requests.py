"""Requests of clients to a server whose model pools, made from a seed: inputs, scores, ranks, wrong bodies.

The same seed gives the same requests. Each goes to a model of any task, so that many ask for what the model does not
have, as clients do whose base address is another model's.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from simulated_vllm_support.client_requests import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "tiny"
_JSON = (("content-type", "application/json"),)
_WORDS = ("river", "stone", "lamp", "seven", "green", "ocean", "paper", "quiet", "under", "music", "north", "glass")
_SCORES = ("/score", "/v1/score", "/score")
_RANKS = ("/rerank", "/v1/rerank", "/v2/rerank")
_INPUTS = ("/v1/embeddings", "/classify", "/pooling")


def requests_that_pool(count: int, seed: int) -> list[Asked]:
    """Return that many different requests, each kind about equally often."""
    rng = random.Random(seed)  # noqa: S311 - the same requests each time
    asked: list[Asked] = []
    seen: set[tuple[str, bytes, str]] = set()
    while len(asked) < count:
        for kind, make in KINDS.items():
            request = make(rng)
            whole = (request.path, request.content, request.method)
            if len(asked) < count and whole not in seen:
                seen.add(whole)
                asked.append(Asked(kind, request.method, request.path, request.headers, request.content))
    return asked


def _post(path: str, body: object, *headers: tuple[str, str]) -> Asked:
    return Asked("", "POST", path, (*_JSON, *headers), json.dumps(body).encode())


def _text(rng: random.Random, most: int = 9) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, most)))


def _texts(rng: random.Random, most: int = 4) -> list[str]:
    return [_text(rng) for _ in range(rng.randint(1, most))]


def _input(rng: random.Random) -> dict[str, Any]:
    return {"model": MODEL, "input": rng.choice((_text(rng), _texts(rng)))}


def _inputs(rng: random.Random) -> Asked:
    value: Any = rng.choice((
        _text(rng), _texts(rng), [5, 6, 7], [[5, 6], [7]], [], "", [""], ["a", ""], [[]], None, 5, [5, "a"], ["a", 5],
        {"a": 1}, [-1], [10**6], [2**70], [1.5], "long " * 700, ["a", "long " * 700], [7] * 512, [7] * 513, True,
        [True, False], [None], [_texts(rng)], " ", "\n",
    ))  # fmt: skip
    return _post(rng.choice(_INPUTS), {"model": MODEL, "input": value})


def _coding(rng: random.Random) -> Asked:
    more = {
        "encoding_format": rng.choice(("float", "base64", "bytes", "bytes_only", "hex", None, 5)),
        "embed_dtype": rng.choice(("float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "int8", 5)),
        "endianness": rng.choice(("native", "big", "little", "middle")),
    }
    names = rng.sample(list(more), rng.randint(1, 3))
    return _post(rng.choice((*_INPUTS, "/v1/embeddings")), _input(rng) | {name: more[name] for name in names})


def _option(rng: random.Random) -> Asked:
    more: dict[str, Any] = rng.choice((
        {"dimensions": rng.choice((1, 8, 32, 64, 0, -1, 100, "x", 1.5, None))},
        {"normalize": rng.choice((True, False))},
        {"use_activation": rng.choice((True, False, None, "x", "yes"))}, {"user": rng.choice(("me", 5))},
        {"request_id": rng.choice(("mine", 5))}, {"priority": rng.choice((0, 1, -1, "high", 2**64))},
        {"cache_salt": rng.choice(("salt", "", 5, "a" * 200, "a/b"))},
        {"add_special_tokens": rng.choice((True, False, 5))},
        {"padding": rng.choice(("max_length", "do_not_pad", "longest"))}, {"mm_processor_kwargs": rng.choice(({}, 5))},
        {"activation": True}, {"softmax": False}, {"stream": True}, {"temperature": 1}, {"data": "x"},
        {"chat_template": "x"}, {"additional_data": 5},
    ))  # fmt: skip
    return _post(rng.choice(_INPUTS), _input(rng) | more)


def _truncation(rng: random.Random) -> Asked:
    more: dict[str, Any] = {"truncate_prompt_tokens": rng.choice((1, 2, 5, 512, 513, -1, 0, -2, "x", None, 2**70))}
    if rng.random() < 0.4:
        more["truncation_side"] = rng.choice(("left", "right", "both", None))
    value = rng.choice((_text(rng), _texts(rng), "long " * 700, [7] * 600))
    return _post(rng.choice(_INPUTS), {"model": MODEL, "input": value} | more)


def _task(rng: random.Random) -> Asked:
    task = rng.choice((
        *("embed", "classify", "token_embed", "token_classify", "plugin", "embed&token_classify", "score", "encode"),
        *("riddle", None, 5),
    ))  # fmt: skip
    return _post("/pooling", _input(rng) | {"task": task})


def _messages(rng: random.Random) -> Asked:
    messages: Any = rng.choice((
        [{"role": "user", "content": _text(rng)}],
        [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "user", "content": [{"type": "text", "text": _text(rng)}]}], [], "a", [5], [{"role": "user"}],
        [[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]], [[]],
        [{"role": "robot", "content": "a"}], [{"content": "a"}], [{"role": "user", "content": None}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}],
    ))  # fmt: skip
    more = rng.choice(({}, {}, {}, {"add_generation_prompt": True}, {"continue_final_message": True},
                       {"add_generation_prompt": True, "continue_final_message": True}, {"input": "a"},
                       {"chat_template_kwargs": {"a": 1}}, {"chat_template": "{{ messages }}"}))  # fmt: skip
    name = "input" if rng.random() < 0.25 and "input" not in more else "messages"
    return _post(rng.choice(_INPUTS), {"model": MODEL, name: messages} | more)


def _without(rng: random.Random) -> Asked:
    path = rng.choice((*_INPUTS, *_SCORES, *_RANKS, "/v2/embed"))
    body: Any = rng.choice(({}, {"model": MODEL}, {"query": "a"}, {"text_1": "a"}, {"documents": ["a"]}, [], "text", 5,
                            None, {"inputs": "a"}, {"prompt": "a"}, {"queries": "a", "text_2": "b"}))  # fmt: skip
    return _post(path, body)


def _side(rng: random.Random) -> Any:
    return rng.choice((
        _text(rng), _texts(rng), _text(rng), _texts(rng), [], "", [""], 5, [5], None, [[5]],
        {"content": [{"type": "text", "text": _text(rng)}]}, [{"content": [{"type": "text", "text": _text(rng)}]}],
        {"content": []}, {"content": "a"}, {}, {"content": [{"type": "riddle"}]},
    ))  # fmt: skip


_PAIRS = (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))


def _score(rng: random.Random) -> Asked:
    left, right = rng.choice(_PAIRS)
    count = rng.randint(1, 3)
    fitting = (rng.choice((_text(rng), [_text(rng) for _ in range(count)])), [_text(rng) for _ in range(count)])
    first, second = fitting if rng.random() < 0.6 else (_side(rng), _side(rng))
    return _post(rng.choice(_SCORES), {"model": MODEL, left: first, right: second} | _scoring(rng))


def _scoring(rng: random.Random) -> dict[str, Any]:
    return rng.choice((
        {}, {}, {}, {}, {"use_activation": rng.choice((True, False, "x"))}, {"normalize": True},
        {"truncate_prompt_tokens": rng.choice((4, 0, -1, 513, -2, "x"))},
        {"max_tokens_per_doc": rng.choice((2, 0, -1, "x"))},
        {"max_tokens_per_query": rng.choice((2, -1))}, {"instruction": rng.choice(("find it", 5))},
        {"activation": False},
        {"chat_template_kwargs": {"a": 1}}, {"priority": "x"}, {"mm_processor_kwargs": {}},
        {"encoding_format": "base64"},
        {"model": "other"}, {"truncation_side": "both"},
    ))  # fmt: skip


def _rank(rng: random.Random) -> Asked:
    body: dict[str, Any] = {"model": MODEL, "query": _text(rng), "documents": _texts(rng)}
    if rng.random() < 0.4:
        body |= rng.choice(({"query": _side(rng)}, {"documents": _side(rng)}))
    if rng.random() < 0.5:
        body["top_n"] = rng.choice((1, 2, 99, 0, -1, "x", None, 1.5))
    more = rng.choice(({}, {}, {"return_documents": False}, {"max_chunks_per_doc": 5}, _scoring(rng)))
    return _post(rng.choice(_RANKS), body | more)


def _cohere(rng: random.Random) -> Asked:
    more: dict[str, Any] = rng.choice((
        {}, {}, {"input_type": rng.choice(("search_query", "classification", 5))},
        {"output_dimension": rng.choice((8, 0))},
        {"embedding_types": rng.choice((["float"], ["base64"], ["float", "base64"], ["binary"], ["ubinary"], ["int8"],
        []))},
        {"truncate": rng.choice(("NONE", "START", "END", "MIDDLE"))}, {"max_tokens": rng.choice((2, 0, -1, 600))},
        {"truncate": "NONE", "texts": ["long " * 700]}, {"truncate": "START", "texts": ["long " * 700]},
        {"texts": rng.choice(([], "a", None, [5], [""]))}, {"images": ["x"]}, {"images": ["x"], "texts": None},
        {"inputs": [{"content": [{"type": "text", "text": "a"}]}], "texts": None},
        {"inputs": [{"content": [{"type": "text"}]}], "texts": None}, {"inputs": [], "texts": None}, {"model": "other"},
        {"inputs": [{"content": [{"type": "image_url"}]}], "texts": None}, {"priority": 1},
    ))  # fmt: skip
    body = {"model": MODEL, "texts": _texts(rng)} | more
    return _post("/v2/embed", {name: value for name, value in body.items() if value is not None or name != "texts"})


def _invocation(rng: random.Random) -> Asked:
    body: Any = rng.choice((
        _input(rng), {"model": MODEL, "query": "a", "documents": ["b"]}, {"model": MODEL, "text_1": "a", "text_2": "b"},
        {"model": MODEL, "prompt": "a"}, {}, [], {"model": MODEL, "texts": ["a"]}, {"model": MODEL, "data": "x"},
        {"model": MODEL, "messages": [{"role": "user", "content": "a"}]}, {"input": 5},
        {"model": MODEL, "queries": "a", "items": ["b"]}, _input(rng) | {"encoding_format": "base64"},
    ))  # fmt: skip
    return _post("/invocations", body)


def _name(rng: random.Random) -> Asked:
    name = rng.choice(("gpt-4", "", None, 5, "tiny ", "TINY", ["tiny"]))
    bodies: tuple[tuple[str, dict[str, Any]], ...] = (
        *((path, {"input": "a"}) for path in _INPUTS), ("/score", {"text_1": "a", "text_2": "b"}),
        ("/rerank", {"query": "a", "documents": ["b"]}), ("/v2/embed", {"texts": ["a"]}),
    )  # fmt: skip
    path, body = rng.choice(bodies)
    body = {**body, "model": name} if rng.random() < 0.85 else body
    return _post(path, body)


def _broken_body(rng: random.Random) -> Asked:
    path = rng.choice((*_INPUTS, *_SCORES, *_RANKS, "/v2/embed", "/invocations"))
    text = rng.choice([
        b"", b"{", b"[]", b"null", b"true", b'"text"', b"5", b"{}", b'{"input": }', b"\xff\xfe",
        b'{"input": "\\ud800"}',
        b'{"model":"tiny",}', b"NaN", b'{"input": NaN}', b'{"input":"a"}{"b":1}', b"\xef\xbb\xbf{}",
    ])  # fmt: skip
    kind = rng.choice(("application/json", "application/json; charset=utf-8", "text/plain", "", "APPLICATION/JSON"))
    return Asked("", "POST", path, (("content-type", kind),) if kind else (), text)


_ROUTES = (
    *(*_INPUTS, *_SCORES, *_RANKS, "/v2/embed", "/v1/classify", "/v1/pooling", "/embed", "/embeddings", "/encode"),
    *("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generative_scoring", "/tokenize"),
    *("/v1/models", "/health", "/ping", "/version", "/load", "/v1/models/tiny", "/invocations", "/detokenize"),
    *("/v1/embeddings/", "/tokenizer_info", "/v1/audio/transcriptions", "/v1/completions/render", "/sleep"),
)


def _route(rng: random.Random) -> Asked:
    method = rng.choice(("GET", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"))
    content = b"{}" if method in ("POST", "PUT") else b""
    return Asked("", method, rng.choice(_ROUTES), _JSON if content else (), content)


def _tokens(rng: random.Random) -> Asked:
    path, body = rng.choice([
        ("/tokenize", {"prompt": _text(rng)}), ("/tokenize", {"prompt": _text(rng), "return_token_strs": True}),
        ("/tokenize", {"messages": [{"role": "user", "content": "a"}]}), ("/tokenize", {"prompt": 5}),
        ("/tokenize", {}),
        ("/detokenize", {"tokens": [5, 6]}), ("/detokenize", {"tokens": ["a"]}),
        ("/tokenize", {"prompt": "a", "model": "b"}),
        ("/v1/chat/completions", {"model": MODEL, "messages": [{"role": "user", "content": "a"}]}),
        ("/v1/completions", {"model": MODEL, "prompt": "a"}),
    ])  # fmt: skip
    return _post(path, body)


KINDS: dict[str, Callable[[random.Random], Asked]] = {
    "inputs": _inputs,
    "embedding": lambda rng: _post(rng.choice(_INPUTS), _input(rng)),
    "coding": _coding,
    "option": _option,
    "truncation": _truncation,
    "task": _task,
    "messages": _messages,
    "nothing": _without,
    "score": _score,
    "rank": _rank,
    "cohere": _cohere,
    "invocation": _invocation,
    "name": _name,
    "broken": _broken_body,
    "route": _route,
    "tokens": _tokens,
}
