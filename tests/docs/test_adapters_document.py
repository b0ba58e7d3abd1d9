"""docs/adapters.md: its stack is planned, with the options and folders that the page names."""

import re

import yaml

from bezel.planner import make_plan
from tests.support.docs.markdown import ROOT

PAGE = (ROOT / "docs" / "adapters.md").read_text()


def test_stack_of_the_page_serves_both_adapters() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(block)["config"].items()}
    plan = make_plan(config, project="acme-llm", stack="dev")
    assert plan.weights.adapters == {"adapters/sql": 32, "own/law": 32}
    assert {"--enable-lora", "--max-loras=2", "--max-lora-rank=32"} <= set(plan.server.arguments)
    assert "--max-cpu-loras=2" not in plan.server.arguments
