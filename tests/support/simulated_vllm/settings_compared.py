"""One setting of vLLM judged by the plan and by the simulated server: what a real vLLM's verdict is held against.

A setting is `{"vllm": options as a stack file has them, "variables": of the container}`. Its verdict is None where it
is taken, else what is said of it. Explanations of differences are rows of tools/vllm/settings/explanations.json.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import json
import re
from pathlib import Path
from typing import Any

from bezel.planner.rules.env_checks import check_read
from bezel.planner.vllm.argument_conflicts import check_conflicts
from bezel.planner.vllm.arguments import as_word, chosen_arguments, merge
from bezel.planner.vllm.option_checks import check_fields, check_options
from bezel_catalog import model, vllm_options
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import make_settings
from bezel_simulated_vllm.release import DEFAULT_RELEASE
from simulated_vllm_support.process import MODEL
from tests.support.planner.command_line import option_words

ROOT = Path(__file__).parents[3]
EXPLAINED = ROOT / "tools" / "vllm" / "settings" / "explanations.json"
RECORDED = ROOT / "tests" / "simulated_vllm" / "data" / "settings-0.32.0.json"
TABLE = ROOT / "tests" / "results" / "settings-compared.json"
CONTEXT = 32_768  # of the tiny model that the real vLLM is given
OPTIONS = vllm_options(DEFAULT_RELEASE)
# The variable that has unknown ones refused, as the deployment has it.
_STRICT = ("--fail-on-environ-validation",)

Setting = dict[str, Any]


def words(setting: Setting) -> list[str]:
    """What follows `vllm serve MODEL`, as the plan writes it; options that there are not as it would write them."""
    arguments = merge({}, chosen_arguments(setting["vllm"], OPTIONS), OPTIONS)
    writable = {name: one for name, one in arguments.items() if _can_be_written(name, one.written)}
    others = [f"--{name}={as_word(one.written)}" for name, one in arguments.items() if name not in writable]
    return [*option_words(writable, OPTIONS), *others, *_STRICT]


def _can_be_written(name: str, value: object) -> bool:
    """Whether the plan would write it: an option of the release, and a switch as one."""
    option = OPTIONS.find(f"--{name}")
    return option is not None and (isinstance(value, bool) or option[0].kind not in ("switch", "switch-pair"))


def plan_verdict(setting: Setting) -> str | None:
    """The first problem that the plan has with it."""
    tiny = model("gemma-4-12b-it")
    tiny = dataclasses.replace(tiny, architecture=dataclasses.replace(tiny.architecture, context=CONTEXT))
    arguments = merge({}, chosen_arguments(setting["vllm"], OPTIONS), OPTIONS)
    problems = [
        *check_options(arguments, OPTIONS),
        *check_conflicts(arguments, tiny, "nvidia-l4", environment={}, options=OPTIONS),
        *check_fields(arguments, OPTIONS),
        *check_read(setting["variables"], OPTIONS, tpu=False),
    ]
    return f"{problems[0].key}: {problems[0].consequence}" if problems else None


def simulated_verdict(setting: Setting, folder: Path) -> str | None:
    """How the simulated server's start ends, on an L4.

    Args:
        setting: to be judged.
        folder: where the made-up model may be written.
    """
    made = folder / "tiny"
    if not made.is_dir():
        made.mkdir(parents=True)
        (made / "config.json").write_text(json.dumps(MODEL | {"max_position_embeddings": CONTEXT}))
        (made / "model.safetensors").write_bytes(b"\0" * 400_000)
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            options = parse(["/mnt/models/tiny", *words(setting)])
        make_settings(options, _machine(folder), setting["variables"])
    except SystemExit:
        return output.getvalue().strip().splitlines()[-1]
    except StartError as error:
        return str(error)
    return None


@functools.cache
def _machine(folder: Path) -> Any:
    return machine_from_environment({"LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)})})


Verdicts = dict[str, list[str | None]]


def verdicts(rows: list[Setting], folder: Path) -> Verdicts:
    """What the plan and the simulated server say of settings, in their order.

    Args:
        rows: settings.
        folder: where the made-up model may be written.
    """
    return {
        "plan": [plan_verdict(row) for row in rows],
        "simulated": [simulated_verdict(row, folder) for row in rows],
    }


def table(rows: list[Setting], by_judge: Verdicts, stamp: dict[str, str]) -> dict[str, Any]:
    """What the plan and the simulated server say of settings that a real vLLM has judged, as a table of the documents.

    Args:
        rows: settings, each with the verdict of the real one.
        by_judge: the verdicts of the others.
        stamp: of the real one's run.
    """
    reasons = {
        who: collections.Counter(
            explanation(row, who, verdict, row["real"]) for row, verdict in zip(rows, verdicts_of_judge, strict=True)
        )
        for who, verdicts_of_judge in by_judge.items()
    }
    return {
        "title": "vLLM: generated settings",
        "document": "fidelity",
        "order": 31,
        "about": f"{len(rows)} settings made up from the recorded options and variables, most of them at a bound or "
        f"behind it, of which a real vLLM 0.32.0 refuses {sum(row['real'] is not None for row in rows)}: parsed and "
        "configured by its own classes in one process, no engine started. The plan's rules and the simulated server's "
        "start are held against that; tests/simulated_vllm/test_settings_compared.py does it again in each run. With "
        "`--seed NUMBER ...` instead of `--record` the command makes 300 others of each seed, in about half a minute.",
        "command": ".venv/bin/python -m tools.vllm.settings.compare PYTHON MODEL --record",
        "stamp": stamp,
        "columns": ["judge", "compared", "equal", "explained"],
        "rows": [
            [who, len(rows), verdicts_of_judge[""], sum(count for reason, count in verdicts_of_judge.items() if reason)]
            for who, verdicts_of_judge in reasons.items()
        ],
        "notes": [
            {
                "what": f"{who}, {count} of {len(rows)}",
                "why": reason,
                "evidence": EXPLAINED.relative_to(ROOT).as_posix(),
            }
            for who, verdicts_of_judge in reasons.items()
            for reason, count in sorted((reason, count) for reason, count in verdicts_of_judge.items() if reason)
        ],
    }


@functools.cache
def explanations() -> tuple[dict[str, Any], ...]:
    """Rows of the file of explanations."""
    return tuple(json.loads(EXPLAINED.read_text(encoding="utf-8")))


def explanation(setting: Setting, who: str, verdict: str | None, real: str | None) -> str | None:
    """Why this one and the real vLLM do not agree, "" where they do; None where nobody has explained it."""
    if (verdict is None) == (real is None):
        return ""
    says = "taken" if verdict is None else "refused"
    settings = {
        name: one.written for name, one in merge({}, chosen_arguments(setting["vllm"], OPTIONS), OPTIONS).items()
    } | setting["variables"]
    for row in explanations():
        fits = any(
            re.fullmatch(row["name"], name) and row.get("value", value) == value for name, value in settings.items()
        )
        if fits and says == row["says"] and who in row["who"] and re.search(row["words"], verdict or real or ""):
            return str(row["reason"])
    return None
