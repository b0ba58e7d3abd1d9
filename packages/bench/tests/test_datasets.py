"""Files of prompts: each form is sent as what it means, and an entry of no known form is refused with its place."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.errors import UserError
from bezel_bench.load.plan import Closed, Load, PromptPlan, ReplyingBodies, Stop, Target
from bezel_bench.prompts.datasets import read_entries
from bezel_bench.prompts.entries import Entry
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


ANSWER = {"role": "assistant", "content": "b"}
CALL = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function"}]}


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
        ("[INST] a [/INST]\n[1] b", [[user("[INST] a [/INST]")], [user("[1] b")]]),
        (json.dumps({"messages": CHAT}), [CHAT[:2]]),
        (json.dumps(CHAT) + "\n" + json.dumps([user("z")]), [CHAT[:2], [user("z")]]),
        (
            json.dumps([{"messages": [user([IMAGE, {"type": "text", "text": "?"}])]}]),
            [[user([IMAGE, {"type": "text", "text": "?"}])]],
        ),
        (json.dumps(SHAREGPT), [[user("first?")], [{"role": "system", "content": "be short"}, user("b")]]),
        (json.dumps(SHAREGPT, indent=2), [[user("first?")], [{"role": "system", "content": "be short"}, user("b")]]),
        ("\ufeff" + json.dumps(["a", {"prompt": "b"}]), [[user("a")], [user("b")]]),
        (
            json.dumps({"prompt": "a\u2028b\x85"}, ensure_ascii=False) + '\n\n"c"\n',
            [[user("a\u2028b\x85")], [user("c")]],
        ),
        (json.dumps({"prompt": "a"}, indent=1), [[user("a")]]),
        (json.dumps([*CHAT, user("c")], indent=1), [[*CHAT, user("c")]]),
        (
            json.dumps([{"conversations": []}, {"conversations": [{"from": "gpt", "value": "x"}]}, "c"]),
            [[], [], [user("c")]],
        ),
        (json.dumps({"prompt": [user("a")], "chosen": [ANSWER]}), [[user("a")]]),
        (json.dumps({"prompt": ["a", "b"]}) + '\n{"messages": [{"text": "c"}]}', [[user("a")], [user("c")]]),
        (json.dumps({"messages": [{"role": "human", "content": "a", "hashed_ip": "9f", "name": None}]}), [[user("a")]]),
        (json.dumps({"messages": [user("a"), CALL | {"content": None}, user("b")]}), [[user("a"), CALL, user("b")]]),
        (json.dumps([user([IMAGE | {"text": None}])]) + '\n"c"', [[user([IMAGE])], [user("c")]]),
    ],
)
def test_each_form_is_read_as_what_it_means(tmp_path: Path, text: str, messages: list[Any]) -> None:
    assert read(tmp_path, text) == messages


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('ok\n{"text": "x"}\n', "line 2"),
        ("3\n[1, 2]\n", "line 2"),
        (json.dumps([{"conversations": [{"from": "gpt", "value": "x"}]}]), "no turn is of a user"),
        (json.dumps([SHAREGPT[0], {"conversations": [3]}]), "entry 2"),
        (json.dumps([SHAREGPT[0], {"conversations": "[{'from': 'human'}]"}]), "a list in JSON in `conversations`"),
        (json.dumps({"version": 1, "data": []}, indent=1), "line 1.*\n.*it has version, data"),
        (json.dumps([{"messages": [{"role": "assistant", "content": "x"}]}]), "entry 1"),
        (json.dumps([{"messages": [{"content": "x"}]}]), "entry 1"),
        (json.dumps([{"messages": [{"role": "user", "text": "x"}]}]), "no `content`"),
        (json.dumps([{"messages": [{"role": "user", "content": None}]}]), "entry 1"),
        (json.dumps(SHAREGPT)[:-9], "it begins as a JSON array and is none"),
        ("", "no text to send"),
        ("[]", "no text to send"),
    ],
)
def test_another_form_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(UserError, match=place):
        read(tmp_path, text)


def test_a_file_of_json_has_no_line_of_text(tmp_path: Path) -> None:
    text = '{"prompt": "a"}\n{"prompt": "b'
    assert read(tmp_path, text) == [[user("a")], [user('{"prompt": "b')]]
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"a.jsonl, line 2\n.*it is not JSON"):
        read_entries(tmp_path / "a.jsonl")


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


TALK = [
    {"from": "system", "value": "be short"},
    *({"from": who, "value": f"{who} {number}"} for number in range(3) for who in ("human", "gpt")),
]


def messages_of(body: Any) -> list[str]:
    return [message["content"] for message in json.loads(body.data)["messages"]]


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("a.csv", 'id,question,n\n1,"one, two",3\n2,b,4\n', "question"),
        ("a.TSV", "id\tprompt\tn\n1\tone, two\t3\n2\tb\t4\n", ""),
        ("a.csv", '\ufeffn,text\n3.0,"one, two"\n4,b\n', ""),
        ("a.csv", 'prompt;n;id\n"[{""role"": ""user"", ""content"": ""one, two""}]";3;é\nb;4;\n', ""),
        ("a.csv", f'id,prompt,n\n"{"x" * 200_000}","one, two",3\n,b,4\n,,5\n', ""),
        ("a.jsonl", '{"q": "one, two", "n": 3}\n{"q": "b", "n": "4"}\n', "q"),
        ("a.json", json.dumps([{"q": [user("one, two")], "n": 3}, {"q": "b", "n": 4}]), "q"),
    ],
)
def test_a_column_has_the_prompts_and_another_their_lengths(tmp_path: Path, name: str, text: str, column: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert [(entry.text, entry.output_tokens) for entry in read_entries(file, column, "n")] == [
        ("one, two", 3),
        ("b", 4),
    ]
    plan = replace(load(file).prompts, column=column, length_column="n")
    bodies = make_prompts(replace(load(file), prompts=plan), lambda *_: pytest.fail("nothing is asked")).bodies
    made = [bodies.body(number) for number in range(3)]
    assert [(json.loads(one.data)["max_tokens"], one.asked_tokens) for one in made] == [(3, 3), (4, 4), (3, 3)]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b\n1,2\n", ("", ""), "none is `prompt`"),
        ("a,b\n1,2\n", ("c", ""), "no `c`: it has a, b"),
        *(
            (f"a,b\n1,{length}\n", ("a", "b"), f"tokens above 0 in `b`, got '{length}'")
            for length in ("x", "3.5", "0", "inf", "1e400", "nan", "")
        ),
        ("a,b\n1,2,3\n", ("a", ""), "line 2.*\n.*more cells than the header"),
        ("", ("a", ""), "no text to send"),
    ],
)
def test_a_table_without_what_is_named_is_refused(
    tmp_path: Path, text: str, columns: tuple[str, str], message: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_entries(file, *columns)


def test_parquet_without_its_reader_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pip install 'bezel-bench\[parquet\]'"):
        read_entries(tmp_path / "a.parquet", "q")


def test_parquet_is_read_by_its_columns(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"q": ["a", "b"], "chat": [TALK, TALK], "n": [3, 4]}), file)
    assert [(entry.text, entry.output_tokens) for entry in read_entries(file, "q", "n")] == [("a", 3), ("b", 4)]
    assert [entry.questions for entry in read_entries(file, "chat")] == [3, 3]
    rows = [{"messages": [user("a") | {"name": None}, ANSWER | {"name": "n"}], "at": pa.scalar(1, pa.timestamp("ns"))}]
    parquet.write_table(pa.Table.from_pylist([*rows, {"messages": None}]), file)
    assert [entry.messages for entry in read_entries(file)] == [(user("a"),)]
    parquet.write_table(pa.table({"q": ["a"], "__index_level_0__": [7]}), file)
    assert [entry.text for entry in read_entries(file)] == ["a"]
    parquet.write_table(pa.table({"q": pa.array([], pa.string())}), file)
    with pytest.raises(UserError, match="no text to send"):
        read_entries(file)
    file.write_bytes(b"PAR0")
    with pytest.raises(UserError, match="it cannot be read"):
        read_entries(file, "q")


def test_turns_of_a_file_are_sent_one_by_one_with_its_answers(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps([{"conversations": TALK}, {"conversations": TALK[:3]}]))
    plan = replace(load(file).prompts, turns=2)
    made = make_prompts(replace(load(file), prompts=plan), lambda *_: pytest.fail("nothing is asked"))
    assert made.bodies.turns == 2
    first, second, again = made.bodies.body(0), made.bodies.body(0, 1), made.bodies.body(1)
    assert messages_of(first) == ["be short", "human 0"]
    assert messages_of(second) == ["be short", "human 0", "gpt 0", "human 1"]
    assert (second.turn, again.data) == (1, first.data)
    assert "1 entry of s.json left out, by their turns or their length" in made.notes
    served = make_prompts(
        replace(load(file), prompts=replace(plan, served_answers=True)), lambda *_: pytest.fail("nothing is asked")
    )
    assert isinstance(served.bodies, ReplyingBodies)
    assert messages_of(served.bodies.reply(0, 1, ["yes"])) == ["be short", "human 0", "yes", "human 1"]
    with pytest.raises(UserError, match="none of 2 entries has the turns"):
        make_prompts(replace(load(file), prompts=replace(plan, turns=4)), lambda *_: pytest.fail("nothing is asked"))


def test_entries_are_chosen_by_their_characters(tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_text("a\nbbb\nccccc\n")
    plan = replace(load(file).prompts, min_chars=2, max_chars=4)
    made = make_prompts(replace(load(file), prompts=plan), lambda *_: pytest.fail("nothing is asked"))
    assert [messages_of(made.bodies.body(number)) for number in range(2)] == [["bbb"]] * 2
    assert "2 entries of p.txt left out, by their turns or their length" in made.notes
