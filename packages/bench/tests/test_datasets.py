"""Files of prompts: each form is sent as what it means, and an entry of no known form is refused with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.errors import UserError
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_bench.prompts.datasets import Entry, read_entries
from bezel_bench.prompts.prompts import make_prompts

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SHAREGPT = [
    {"id": "1", "conversations": [{"from": "human", "value": "first?"}, {"from": "gpt", "value": "yes"}]},
    {
        "conversations": [
            {"from": "system", "value": "be short"},
            {"from": "gpt", "value": "?"},
            {"from": "human", "value": "b"},
        ]
    },
]
CHAT = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def read(folder: Path, text: str) -> list[list[Any]]:
    file = folder / "prompts"
    file.write_text(text, encoding="utf-8")
    return [list(entry.messages) for entry in read_entries(file)]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ('one\n\ntwo "x"\n', [[user("one")], [user('two "x"')]]),
        ('"a\\nb"\n{"prompt": "c", "id": 3}\n', [[user("a\nb")], [user("c")]]),
        ("{not json\n[neither\n", [[user("{not json")], [user("[neither")]]),
        (json.dumps({"messages": CHAT}), [CHAT[:2]]),
        (json.dumps(CHAT) + "\n" + json.dumps([user("z")]), [CHAT[:2], [user("z")]]),
        (json.dumps([{"messages": [user([IMAGE, {"type": "text", "text": "?"}])]}]), None),
        (json.dumps(SHAREGPT), [[user("first?")], [{"role": "system", "content": "be short"}, user("b")]]),
        (json.dumps(SHAREGPT, indent=2), [[user("first?")], [{"role": "system", "content": "be short"}, user("b")]]),
        ("\ufeff" + json.dumps(["a", {"prompt": "b"}]), [[user("a")], [user("b")]]),
    ],
)
def test_each_form_is_read_as_what_it_means(tmp_path: Path, text: str, messages: list[Any] | None) -> None:
    parsed = read(tmp_path, text)
    if messages is None:
        assert parsed[0][0]["content"][0] == IMAGE
    else:
        assert parsed == messages


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('ok\n{"text": "x"}\n', "line 2"),
        ("3\n[1, 2]\n", "line 2"),
        (json.dumps([SHAREGPT[0], {"conversations": [{"from": "gpt", "value": "x"}]}]), "entry 2"),
        (json.dumps([SHAREGPT[0], {"conversations": ["x"]}]), "entry 2"),
        (json.dumps([{"messages": [{"role": "assistant", "content": "x"}]}]), "entry 1"),
        (json.dumps([{"messages": [{"content": "x"}]}]), "entry 1"),
        (json.dumps([{"messages": [{"role": "user", "content": None}]}]), "entry 1"),
        (json.dumps(SHAREGPT)[:-9], "it begins as a JSON array and is none"),
        ("", "no text to send"),
        ("[]", "no text to send"),
    ],
)
def test_another_form_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(UserError, match=place):
        read(tmp_path, text)


def test_of_many_wrong_entries_the_first_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="40 entries of prompts cannot be sent") as refused:
        read(tmp_path, "\n".join(['{"a": 1}'] * 40))
    assert len(refused.value.problems) == 5


@pytest.mark.slow
@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_any_text_survives_as_json(text: str) -> None:
    entry = Entry((user(text),))
    assert entry.text == text


def load(file: Path, endpoint: Any = "chat") -> Load:
    target = Target("http://127.0.0.1:1", "m", endpoint, public=True)
    return Load(target, Closed(1), Stop(requests=2), PromptPlan("file", file=str(file), output_tokens=7))


def test_requests_hold_the_messages_in_order_over_and_over(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(SHAREGPT))
    made = make_prompts(load(file), lambda *_: pytest.fail("nothing is asked"))
    bodies = [json.loads(made.bodies.body(number).data) for number in range(3)]
    assert [body["messages"][-1]["content"] for body in bodies] == ["first?", "b", "first?"]
    assert bodies[1]["messages"][0]["role"] == "system"
    assert {(body["max_tokens"], body["ignore_eos"], body["stream"]) for body in bodies} == {(7, True, True)}
    assert "2 entries of s.json" in made.notes[0]


def test_an_endpoint_of_one_text_takes_no_messages(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(SHAREGPT))
    with pytest.raises(UserError, match="entry 2 has several messages"):
        make_prompts(load(file, "completions"), lambda *_: pytest.fail("nothing is asked"))
    file.write_text(json.dumps(SHAREGPT[:1]))
    made = make_prompts(load(file, "completions"), lambda *_: pytest.fail("nothing is asked"))
    assert json.loads(made.bodies.body(0).data)["prompt"] == "first?"


@pytest.mark.parametrize("name", ["prompts.csv", "prompts.CSV", "prompts.tsv"])
def test_a_table_is_refused_with_the_repair(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("id,prompt\n1,Hello\n")
    with pytest.raises(UserError) as refused:
        read_entries(file)
    assert "line by line" in str(refused.value)
    assert "JSON lines" in str(refused.value)
    plain = tmp_path / "prompts.txt"
    plain.write_text("id,prompt\n1,Hello\n")
    assert len(read_entries(plain)) == 2, "a text may hold commas"
