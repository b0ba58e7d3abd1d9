"""The examples in the services' own texts run as they stand."""

from __future__ import annotations

import importlib
import re
from textwrap import dedent
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from tests.support.components.fake_engine import declare

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "component"), [("vllm_service", "VllmService"), ("leased_vllm_service", "LeasedVllmService")]
)
def test_example_declares_its_service(module: str, component: str) -> None:
    source = importlib.import_module(f"bezel_services.{module}")
    (example,) = BLOCK.findall(source.__doc__ or "")

    def program() -> None:
        set_all_config({"gcp:project": "acme-llm"})
        names: dict[str, Any] = {"pulumi": pulumi, **vars(source)}
        exec(dedent(example), names)  # noqa: S102

    declared = declare(program)
    assert declared.by_name("chat").type == f"bezel:services:{component}"
    assert declared.waits_for(declared.by_name("chat-benchmark"), declared.by_name("chat-health"))
