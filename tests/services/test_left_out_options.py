"""`without` leaves an option of the server out in every language, as a null does in a stack file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pulumi.runtime import set_all_config

from bezel.planner import PlanError
from bezel_services.leased_vllm_service import LeasedVllmService
from bezel_services.settings.left_out import leave_out
from bezel_services.settings.planning import ServiceRefusedError
from bezel_services.vllm_service import VllmService
from tests.services.test_component_defaults import CHAT, LEASED
from tests.support.components.fake_engine import declare

if TYPE_CHECKING:
    from collections.abc import Sequence


def arguments(without: Sequence[str], kind: type[Any] = VllmService, settings: dict[str, Any] = CHAT) -> list[str]:
    """The arguments of a server without options."""

    def program() -> Any:
        set_all_config({"gcp:project": "acme-llm"})
        return kind("chat", **settings, without=without)

    server_arguments: list[str] = declare(program).result.arguments
    return server_arguments


def has(server_arguments: list[str], option: str) -> bool:
    return any(word.startswith(f"--{option}=") for word in server_arguments)


@pytest.mark.slow
def test_option_with_a_default_is_left_out() -> None:
    assert has(arguments(()), "reasoning-parser")
    assert not has(arguments(("reasoning-parser",)), "reasoning-parser")


@pytest.mark.slow
def test_option_of_a_leased_server_is_left_out() -> None:
    assert has(arguments((), LeasedVllmService, LEASED), "tool-call-parser")
    changed = arguments(["--tool_call_parser", "enable-auto-tool-choice"], LeasedVllmService, LEASED)
    assert not has(changed, "tool-call-parser")


def test_other_options_are_kept() -> None:
    kept = leave_out({"vllm": {"max-model-len": 4096}}, ["seed"])
    assert kept == {"vllm": {"max-model-len": 4096, "seed": None}}
    assert leave_out({"model": "m"}, ()) == {"model": "m"}


@pytest.mark.parametrize(
    ("settings", "without", "value", "repair"),
    [
        ({}, "reasoning-parser", "reasoning-parser", "list names"),
        ({}, [4], "[4]", "list names"),
        ({"vllm": {"seed": 4}}, ["seed"], "seed", "from one of the two"),
    ],
)
def test_wrong_names_are_refused(settings: dict[str, Any], without: Any, value: str, repair: str) -> None:
    with pytest.raises(PlanError) as refused:
        leave_out(settings, without)
    (problem,) = refused.value.problems
    assert (problem.key, problem.value) == ("without", value)
    assert repair in problem.repair


def test_unknown_option_is_refused_with_a_near_name() -> None:
    with pytest.raises(ServiceRefusedError, match="did you mean reasoning-parser"):
        arguments(["reasoning-parsr"])
