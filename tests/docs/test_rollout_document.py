"""docs/rollout.md shows what a preview says, and settings that a plan takes."""

import yaml
from markdown import ROOT, blocks

from bezel.ops.project import Project
from bezel.planner import PlanError, make_plan
from bezel.planner.rollout import check_room, gpu_quota

DOCUMENT = ROOT / "docs" / "rollout.md"


def test_the_refusal_for_a_small_quota_is_shown_as_it_reads() -> None:
    quota = gpu_quota("nvidia-l4", zonal_redundancy=False)
    found = check_room(1, max_instances=1, gpus=1, quota=quota, region="us-east4")
    (shown,) = blocks(DOCUMENT, "text")
    assert shown.strip() == str(PlanError(tuple(found), stack="l4-qat")).partition("\n\n")[2]


def test_the_setting_that_it_shows_is_accepted() -> None:
    (shown,) = blocks(DOCUMENT, "yaml")
    given = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(shown).items()}
    plan = make_plan(Project(ROOT).configuration("l4-qat") | given, project="my-project", stack="l4-qat")
    assert plan.settings.rollout == "gated"
