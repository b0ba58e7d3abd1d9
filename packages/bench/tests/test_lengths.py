"""Lengths drawn for each request are those of the distribution, the same for every sender, and truly sent."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_support.command_line import parse
from bench_support.tokenizer import TokenServer, counting
from bezel_base.errors import UserError
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_bench.prompts.frames import Prompts
from bezel_bench.prompts.lengths import Lengths, lengths_of
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.server.http_probe import asker

DRAWS = 4000


def draw(text: str, seed: str = "s", count: int = DRAWS) -> list[int]:
    lengths = lengths_of("--input-lengths", text)
    return [lengths.of(index, seed) for index in range(count)]


def test_normal_lengths_have_their_mean_and_deviation() -> None:
    lengths = draw("normal:512,64")
    assert fmean(lengths) == pytest.approx(512, rel=0.02)
    assert stdev(lengths) == pytest.approx(64, rel=0.1)


def test_lognormal_lengths_have_their_median_and_a_long_tail() -> None:
    lengths = draw("lognormal:200,0.8")
    assert median(lengths) == pytest.approx(200, rel=0.1)
    assert fmean(lengths) > 1.2 * median(lengths)


def test_lengths_of_a_file_are_used_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("3\n5\n\n8\n")
    assert draw(f"file:{tmp_path / 'l'}", count=5) == [3, 5, 8, 3, 5]


@pytest.mark.slow
@given(st.sampled_from(["normal:4,400", "lognormal:2,6", "normal:1,0"]), st.integers(0, 10**9))
def test_no_length_is_below_1_or_beyond_any_model(text: str, index: int) -> None:
    length = lengths_of("--input-lengths", text).of(index, "s")
    assert 1 <= length <= 10_000_000
    assert length == lengths_of("--input-lengths", text).of(index, "s"), "the same seed draws the same"


def test_another_seed_draws_others() -> None:
    assert draw("normal:512,64", "a", 20) != draw("normal:512,64", "b", 20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform:1,2", "expected normal, lognormal or file, got 'uniform'"),
        ("normal", "expected a distribution"),
        ("normal:5", "expected a distribution"),
        ("normal:a,b", "expected a distribution"),
        ("normal:0,1", "expected a middle of 1 token or more"),
        ("normal:nan,1", "expected a middle"),
        ("lognormal:5,-1", "a spread of 0 or more"),
        ("file:", "expected a distribution"),
        ("file:missing", "cannot be read"),
    ],
)
def test_what_is_no_distribution_is_refused_with_the_value(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        lengths_of("--input-lengths", text)


@pytest.mark.parametrize(
    ("text", "message"), [("", "it holds no length"), ("4\nx\n", "line 2 is 'x'"), ("0\n", "line 1")]
)
def test_a_file_of_something_else_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "l").write_text(text)
    with pytest.raises(UserError, match=message):
        lengths_of("--input-lengths", f"file:{tmp_path / 'l'}")


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with counting(TokenServer()) as server:
        yield server


def prompts(server: TokenServer, **more: str) -> Prompts:
    plan = PromptPlan("lengths", input_tokens=64, output_tokens=5, run="r", **more)  # type: ignore[arg-type]
    target = Target(server.url, "m", public=True)
    return make_prompts(Load(target, Closed(1), Stop(requests=9), plan), asker(target, dict))


def test_requests_have_the_drawn_lengths_of_prompt_and_response(server: TokenServer, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("80\n120\n300\n")
    (tmp_path / "out").write_text("7\n9\n")
    made = prompts(server, input_lengths=f"file:{tmp_path / 'in'}", output_lengths=f"file:{tmp_path / 'out'}").bodies
    sent = [made.body(index) for index in range(6)]
    assert [len(server.count(json.loads(body.data))) for body in sent] == [80, 120, 300, 80, 120, 300]
    assert [json.loads(body.data)["max_tokens"] for body in sent] == [7, 9, 7, 9, 7, 9]
    assert [body.asked_tokens for body in sent] == [7, 9, 7, 9, 7, 9]
    texts = [json.loads(body.data)["messages"][0]["content"] for body in sent]
    assert len({text[:60] for text in texts}) == 6, "no two begin alike"


def test_where_one_is_not_drawn_it_is_the_same_for_all(server: TokenServer) -> None:
    made = prompts(server, output_lengths="normal:50,10").bodies
    sent = [json.loads(made.body(index).data) for index in range(8)]
    assert {len(server.count(body)) for body in sent} == {64}
    assert len({body["max_tokens"] for body in sent}) > 2


def test_a_length_that_every_request_is_given_cannot_be_drawn(server: TokenServer) -> None:
    target = Target(server.url, "m", public=True)
    plan = PromptPlan("lengths", output_lengths="normal:50,10")
    load = Load(target, Closed(1), Stop(requests=9), plan, extra_body={"max_tokens": 4})
    with pytest.raises(UserError, match="gives all responses one length"):
        make_prompts(load, asker(target, dict))


def test_the_options_make_such_a_load_and_not_beside_other_prompts() -> None:
    target = Target("http://127.0.0.1:1", "m")
    options = ["run", "--url", target.url, "--input-lengths", "normal:512,128"]
    assert load_of(parse(options), target).prompts.kind == "lengths"
    with pytest.raises(UserError, match="defines another set of prompts"):
        load_of(parse([*options, "--turns", "3"]), target)


def test_a_distribution_without_spread_is_one_length() -> None:
    assert {Lengths("lognormal", 100.0, 0.0).of(index, "s") for index in range(9)} == {100}
