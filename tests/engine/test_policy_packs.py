"""What a user types of policy packs reaches the engine whole, with the limits of the stack's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bezel.cli.main import parse
from bezel.engine.run.policy_packs import configurations, has_packs, with_packs
from bezel_base.command_line.parser import UsageError

ROOT = Path(__file__).parents[2]
COST, SECURITY = "policies/hardware_cost", "policies/security"


@pytest.mark.parametrize("typed", [["--policy-pack", COST], [f"--policy-pack={COST}"]])
def test_a_relative_path_is_made_whole_and_gets_the_limits_beside_it(typed: list[str]) -> None:
    made = with_packs(["--json", *typed], here=ROOT, environment="dev")
    assert made == ["--json", f"--policy-pack={ROOT / COST}", f"--policy-pack-config={ROOT / COST}.dev.json"]
    assert configurations(made) == [f"{ROOT / COST}.dev.json"]
    assert has_packs(made)
    assert not has_packs(with_packs(["--json"], here=ROOT, environment="dev"))


def test_from_another_folder_the_same_pack_is_found() -> None:
    made = with_packs(["--policy-pack", "hardware_cost"], here=ROOT / "policies", environment="prod")
    assert made == [f"--policy-pack={ROOT / COST}", f"--policy-pack-config={ROOT / COST}.prod.json"]


def test_what_the_user_configures_himself_is_left_to_him() -> None:
    typed = ["--policy-pack", COST, "--policy-pack-config", "mine.json"]
    made = with_packs(typed, here=ROOT, environment="dev")
    assert made == [f"--policy-pack={ROOT / COST}", f"--policy-pack-config={ROOT / 'mine.json'}"]


def test_a_pack_without_limits_gets_an_empty_file_beside_one_with_limits(tmp_path: Path) -> None:
    """A pack without limits beside it gets an empty file only where another has some."""
    options = ["--policy-pack", str(tmp_path)]
    assert with_packs(options, here=ROOT, environment="dev") == [f"--policy-pack={tmp_path}"]
    made = with_packs([*options, "--policy-pack", COST], here=ROOT, environment="dev")
    assert made[2:] == [f"--policy-pack-config={os.devnull}", f"--policy-pack-config={ROOT / COST}.dev.json"]
    assert configurations(made) == [f"{ROOT / COST}.dev.json"]


def test_an_environment_without_limits_gets_none() -> None:
    assert with_packs(["--policy-pack", COST], here=ROOT, environment="staging") == [f"--policy-pack={ROOT / COST}"]
    assert with_packs(["--json"], here=ROOT, environment="dev") == ["--json"]
    assert with_packs(["--policy-pack"], here=ROOT, environment="dev") == ["--policy-pack"]


@pytest.mark.parametrize(
    "typed",
    [
        ["local", "preview", "l4-qat", "--", "--policy-pack", COST],
        ["local", "preview", "l4-qat", "--speed", "100", "--", "--policy-pack", COST],
        ["local", "preview", "--speed", "100", "l4-qat", "--", "--policy-pack", COST],
    ],
)
def test_what_stands_behind_the_dashes_is_the_engine_s(typed: list[str]) -> None:
    """What stands behind the dashes is the engine's wherever our options stand."""
    options = parse(typed)
    assert options.stack == "l4-qat"
    assert options.pulumi == ["--policy-pack", COST]


def test_dashes_where_nothing_is_passed_on_are_refused() -> None:
    with pytest.raises(UsageError, match="bezel local status: unrecognized argument: -- --json"):
        parse(["local", "status", "--", "--json"])
