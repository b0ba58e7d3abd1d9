"""Every parser of vLLM's registries has a verdict, and the plan and the simulated server each say what it says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bezel.planner.vllm.model.parser_checks import BUILT_IN
from bezel_catalog import vllm_options
from bezel_catalog.loader import DATA
from bezel_catalog.vllm.parsers import parser_verdicts
from tests.support.start_relations.cases import Case, plan_case, seed_models, start_case

ROOT = Path(__file__).parents[2]
STACK, HF = "l4-qat", "hf"
OPTIONS = {"reasoning": "reasoning-parser", "tool": "tool-call-parser"}
PARSERS = [(kind, name) for kind in OPTIONS for name in getattr(parser_verdicts(), kind)]
ENDS = [(kind, name) for kind, name in PARSERS if getattr(parser_verdicts(), kind)[name].error and name != HF]
STARTS = [(kind, name) for kind, name in PARSERS if not getattr(parser_verdicts(), kind)[name].error]
FOREIGN = [(kind, name) for kind, name in STARTS if name != "gemma4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    seed_models(made)
    return made


def parser_case(kind, name, **more):
    alone = {"reasoning": {"enable-auto-tool-choice": False}, "tool": {"reasoning-parser": "null"}}[kind]
    return Case("parser-tokens", STACK, {OPTIONS[kind]: name, **alone, **more}, refused=False)


def test_every_registered_parser_has_a_verdict():
    registered = vllm_options("0.32.0").registered
    assert set(parser_verdicts().reasoning) == set(registered["reasoning-parser"])
    assert set(parser_verdicts().tool) == set(registered["tool-call-parser"])
    assert (len(parser_verdicts().reasoning), len(parser_verdicts().tool)) == (38, 54)
    assert parser_verdicts().release == "0.32.0"


def test_only_the_models_own_parsers_read_its_thoughts_and_calls():
    assert [name for name, row in parser_verdicts().reasoning.items() if row.reads == "thought"] == ["gemma4"]
    assert [name for name, row in parser_verdicts().tool.items() if row.reads == "call"] == ["gemma4"]


@pytest.mark.parametrize(("kind", "name"), ENDS)
def test_a_parser_without_its_tokens_is_refused_on_both_sides(kind, name, folder):
    (problem,) = plan_case(parser_case(kind, name))[1]
    assert problem.key == f"bezel:vllm.{OPTIONS[kind]}"
    assert problem.consequence.endswith("vLLM exits while it starts.")
    verdict = getattr(parser_verdicts(), kind)[name]
    assert verdict.error in (start_case(parser_case(kind, name), folder) or "")


@pytest.mark.parametrize(("kind", "name"), STARTS)
def test_the_simulated_server_starts_with_every_parser_that_starts(kind, name, folder):
    assert start_case(parser_case(kind, name), folder) is None


@pytest.mark.parametrize(("kind", "name"), FOREIGN)
def test_a_parser_that_starts_and_finds_nothing_is_refused_for_that(kind, name):
    (problem,) = plan_case(parser_case(kind, name))[1]
    assert "the server starts and is healthy" in problem.consequence
    assert "exits" not in problem.consequence


@pytest.mark.parametrize(("kind", "name"), FOREIGN)
def test_an_own_template_may_ask_for_the_format_of_another_family(kind, name):
    assert plan_case(parser_case(kind, name, **{"chat-template": "/mnt/models/own.jinja"}))[1] == ()


@pytest.mark.parametrize(("kind", "name"), ENDS)
def test_an_own_tokenizer_may_have_the_tokens(kind, name):
    plan, problems = plan_case(parser_case(kind, name, tokenizer="/mnt/models/other"))
    assert problems == ()
    assert any("the tokens that the parsers look for (tokenizer)" in text for text in plan.warnings)


@pytest.mark.parametrize("mode", ["deepseek_v32", "deepseek_v4", "deepseek_v41", "kimi_k3"])
def test_a_mode_that_writes_chats_of_another_family_is_refused(mode, folder):
    case = Case("tokenizer-mode", STACK, {"tokenizer-mode": mode}, refused=False)
    (problem,) = plan_case(case)[1]
    assert "which Gemma 4 does not know" in problem.consequence
    assert start_case(case, folder) is None


@pytest.mark.parametrize("template", [*sorted(BUILT_IN), "<|im_start|>{{ messages[0].content }}<|im_end|>"])
def test_a_chat_template_of_another_family_is_refused(template):
    (problem,) = plan_case(Case("chat-template-file", STACK, {"chat-template": template}, refused=False))[1]
    assert "the mark of Gemma 4's turns" in problem.consequence


@pytest.mark.parametrize("template", ["<|turn>user\n{{ messages[0].content }}<turn|>", "/mnt/models/own.jinja"])
def test_a_chat_template_that_may_be_gemmas_is_planned(template):
    assert plan_case(Case("chat-template-file", STACK, {"chat-template": template}, refused=False))[1] == ()


@pytest.mark.parametrize(
    "options",
    [
        {"enable-auto-tool-choice": False, "tool-call-parser": "own"},
        {"tool-parser-plugin": "/x.py", "tool-call-parser": "own"},
        {"reasoning-parser-plugin": "/x.py", "reasoning-parser": "own"},
    ],
)
def test_a_name_that_vllm_does_not_look_up_is_planned(options):
    risks = [name for name in options if name.endswith("-plugin")]
    changes = {"access": {"accepted_risks": risks}} if risks else {}
    assert plan_case(Case("parser-name", STACK, options, refused=False, changes=changes))[1] == ()


@pytest.mark.parametrize("option", OPTIONS.values())
def test_a_name_that_vllm_looks_up_is_one_of_its_own(option):
    (problem,) = plan_case(Case("parser-name", STACK, {option: "own"}, refused=True))[1]
    assert "does not know this value" in problem.consequence


@pytest.mark.slow
def test_the_recorded_verdicts_are_those_of_a_real_vllm():
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    done = subprocess.run(
        [
            f"{installed}/venv/bin/python",
            ROOT / "tools/vllm/recorders/parser_verdicts.py",
            f"{installed}/models/tiny-gemma4",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.stdout == (DATA / "vllm/parsers.toml").read_text(encoding="utf-8")
    assert "38 reasoning parsers, 54 tool parsers, 2052 pairs" in done.stderr
