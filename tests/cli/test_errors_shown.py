"""A user's error is shown as one block, whoever shows it: command line, program, policy pack, dynamic provider."""

import json
import subprocess
import sys
from pathlib import Path

import pulumi
import pytest

from bezel.cli.main import main
from bezel_base.errors import Problem, UserError
from tests.stacks.test_program import program
from tests.support.policies.harness import SERVICE, service, violations

ROOT = Path(__file__).parents[2]
COMPARE = ("compare", "--model", "gemma-4-e2b", "--context", "1")
CONTEXT = Problem(
    "--context",
    1,
    "gemma-4-e2b was made for 131072 tokens, and the compared load needs 1024.",
    "choose 1024 to 131072.",
)
RAISED = """
import traceback
from bezel_components.base import dynamic
from bezel_base.errors import Problem
dynamic.in_plugin = lambda: True
try:
    raise dynamic.DeployError(Problem("zone", "us-east5-a", "it has no capacity.", "add another zone."))
except Exception:
    print(traceback.format_exc())
"""


def of_command(capsys: pytest.CaptureFixture[str], _: pytest.MonkeyPatch) -> str:
    assert main(COMPARE) == 1
    return capsys.readouterr().err


def of_program(_: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    shown: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", shown.append)
    program({"bezel:accelerator": "nvdia-l4"})
    return "\n".join(shown)


def of_policy(*_: object) -> str:
    (message,) = violations("most-instances", SERVICE, service({"template.scaling.maxInstanceCount": 40.0}))
    return message


def of_provider(*_: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RAISED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert "Traceback" not in done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("shown", "key", "consequence", "repair"),
    [
        (of_command, "--context = 1", "the compared load needs 1024.", "choose 1024 to 131072."),
        (of_program, "bezel:accelerator = nvdia-l4", "", "did you mean nvidia-l4?"),
        (of_policy, "template.scaling.maxInstanceCount = 40", "dev may have at most 2", "lower `bezel:scaling"),
        (of_provider, "zone = us-east5-a", "it has no capacity.", "add another zone."),
    ],
)
def test_an_error_is_one_block_of_value_consequence_and_repair(
    shown, key: str, consequence: str, repair: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(capsys, monkeypatch).splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.endswith(key)]
    assert lines[head + 1].startswith("   ")
    assert consequence in lines[head + 1]
    assert lines[head + 2].startswith("   Repair: ")
    assert repair in lines[head + 2]


@pytest.mark.parametrize("option", [["--errors", "json"], ["--errors=json"]])
def test_the_command_shows_it_as_one_json_object(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*option, *COMPARE]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err) == UserError(CONTEXT).as_json()


def test_a_plan_is_refused_as_json_with_every_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "Pulumi.x.yaml").write_text("config:\n  gcp:project: acme\n  bezel:accelerator: l5\n")
    monkeypatch.chdir(tmp_path)
    assert main(["--errors", "json", "plan", "x"]) == 1
    refusal = json.loads(capsys.readouterr().err)
    assert refusal["title"] == "Stack x cannot be planned"
    assert {"bezel:accelerator", "bezel:model"} <= {problem["key"] for problem in refusal["problems"]}


def test_a_value_of_any_length_leaves_an_error_readable() -> None:
    for value in ("x" * 10_000, {"x": "y" * 10_000}):
        shown = Problem("bezel:vllm", value, "it is refused.", "remove it.").value or ""
        assert len(shown) < 2100
        assert shown.endswith("…")
    assert Problem("zones", "us-east5-a, " * 40, "they have no capacity.", "add others.").value == "us-east5-a, " * 40


def test_a_failure_of_the_machine_and_an_interrupt_are_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["--errors", "json", "local", "start", "--dir", f"/dev/{'a' * 300}"]) == 1
    (problem,) = json.loads(capsys.readouterr().err)["problems"]
    assert problem["consequence"] == "the system reports: File name too long."

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("bezel.operations.compare.compare.checkpoints", interrupt)
    assert main(["--errors", "json", *COMPARE]) == 130
    assert json.loads(capsys.readouterr().err)["problems"] == [{"text": "stopped"}]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("query", "dev", ""), "PROMPT"),
        (("zones", "x" * 101), "STACK"),
        (("query", "dev", "hi", "--max-tokens", "0"), "--max-tokens"),
        (("zones", "v6e4-moe", "--zone", "../x"), "--zone"),
    ],
)
def test_a_refused_argument_has_the_name_that_the_usage_line_has(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], name: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"bezel: {name} = ")
    with pytest.raises(SystemExit):
        main((arguments[0], "--help"))
    assert name in capsys.readouterr().out.partition("\n\n")[0]
