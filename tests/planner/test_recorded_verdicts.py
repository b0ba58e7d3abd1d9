"""The checks agree with the real parser and engine configuration of vLLM 0.32.0 on every recorded command line.

data/flag-verdicts-0.32.0.txt holds the lines with what vLLM answered, on a tiny text model of 16384 tokens and its
assistant. Where the plan is stricter than vLLM's configuration step, the line stands in STRICTER with the reason.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest

from bezel.planner.vllm.argument_conflicts import check_conflicts
from bezel.planner.vllm.arguments import chosen_arguments, merge
from bezel.planner.vllm.option_checks import check_options
from bezel_catalog import model, vllm_options

OPTIONS = vllm_options("0.32.0")
TINY = dataclasses.replace(
    model("gemma-4-12b-it"), architecture=dataclasses.replace(model("gemma-4-12b-it").architecture, context=16384)
)
STRICTER = {
    "--load-format nonsense": "passes configuration, the engine dies after 20 s",
    "--enable-auto-tool-choice --tool-call-parser nonsense": "passes configuration, the server dies after 7 s",
    "--max-model-len auto": "what fits could not be planned",
    "--max-model-len -1": "what fits could not be planned",
}


def recorded_cases():
    text = (Path(__file__).parent / "data" / "flag-verdicts-0.32.0.txt").read_text(encoding="utf-8")
    return [
        pytest.param(line, verdict == "OK", id=line or "(none)")
        for line, verdict in re.findall(r"^\$ vllm serve T ?(.*)\n   -> (\S+)", text, flags=re.MULTILINE)
    ]


def as_settings(line):
    """A command line as the stack file would say it."""
    arguments, chosen = shlex.split(line), {}
    while arguments:
        flag, _, value = arguments.pop(0).partition("=")
        name, _, inner = flag.removeprefix("--").partition(".")
        option = OPTIONS.find(f"--{name}")
        switch = option is not None and option[0].kind in ("switch", "switch-pair")
        takes_next = not value and arguments and not (arguments[0].startswith("--"))
        value = value or (arguments.pop(0) if takes_next else True)
        if switch and value is not True:
            value = f"{value} "  # a switch with a value: not what the stack file calls true or false
        if isinstance(value, str):
            value = re.sub(r'^A$|(?<=")A(?=")', "/mnt/models/gemma-4-12B-it-assistant", value)
        if inner:
            chosen.setdefault(name, {})[inner] = value
        else:
            chosen[name] = value
    return chosen


@pytest.mark.parametrize(("line", "accepted"), recorded_cases())
def test_what_vllm_accepts_is_accepted_and_what_it_refuses_is_refused(line, accepted):
    arguments = merge({}, chosen_arguments(as_settings(line), OPTIONS), OPTIONS)
    problems = list(check_options(arguments, OPTIONS))
    problems += check_conflicts(arguments, TINY, "nvidia-l4", environment={"HF_HUB_OFFLINE": "1"}, options=OPTIONS)
    assert bool(problems) != (accepted and line not in STRICTER), problems


def test_the_recording_was_read_whole():
    assert len(recorded_cases()) == 53
    assert set(STRICTER) <= {case.values[0] for case in recorded_cases()}
