"""docs/rollout.md shows what a preview says, and settings that a plan takes."""

import yaml

from bezel.engine.project.project import Project
from bezel.planner import PlanError, make_plan
from bezel.planner.assemble.quota import service_needs, shortage
from bezel.planner.assemble.quota_use import use_line
from tests.support.docs.markdown import ROOT, blocks

DOCUMENT = ROOT / "docs" / "rollout.md"


def test_what_a_preview_says_of_a_quota_is_shown_as_it_reads() -> None:
    plan = make_plan(Project(ROOT).configuration("l4-qat"), project="my-project", stack="l4-qat")
    gpus, *_ = service_needs(plan.service, gated=True)
    problem = shortage(gpus, 1, project="my-project")
    used, refused = blocks(DOCUMENT, "text")
    (need, *_) = service_needs(plan.service, gated=False)
    assert used.strip() == use_line(need, 3, 0, (1, 250.0))
    assert refused.strip() == str(PlanError.of([problem], "l4-qat")).partition("\n\n")[2]


def test_the_setting_that_it_shows_is_accepted() -> None:
    (shown,) = blocks(DOCUMENT, "yaml")
    settings = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(shown).items()}
    plan = make_plan(Project(ROOT).configuration("l4-qat") | settings, project="my-project", stack="l4-qat")
    assert plan.settings.rollout == "gated"
