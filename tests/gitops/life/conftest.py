"""One life of a team's stacks on a forge, with the very workflow files: its tests run in this order.

Each begins with what those before it left. A dead run's lock is waited for three minutes, so other stories are told
meanwhile.
"""

from pathlib import Path

import pytest

from tests.support.gitops import team as teams
from tests.support.gitops.programs import program

ORDER = (
    "test_a_change_is_refused_until_it_is_mended_and_approved",
    "test_the_lock_of_a_killed_runner_is_kept_until_its_run_has_ended",
    "test_a_forks_pull_request_gets_no_secret_no_identity_and_no_write",
    "test_a_branch_of_the_team_gets_all_of_these",
    "test_another_price_is_a_pull_request",
    "test_two_merges_of_one_stack_are_deployed_in_turn_as_reviewed",
    "test_the_next_attempt_completes_what_the_killed_runner_began",
    "test_the_second_is_previewed_again_and_another_stack_does_not_wait",
    "test_an_outside_change_is_one_issue_in_the_morning",
    "test_an_expired_stack_is_destroyed_at_night_with_all_that_it_had",
)


def pytest_collection_modifyitems(items):
    here = f"{Path(__file__).parent}/"
    places = [place for place, item in enumerate(items) if str(item.path).startswith(here)]
    ordered = sorted((items[place] for place in places), key=lambda item: ORDER.index(item.originalname))
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
        for mark in (pytest.mark.slow, pytest.mark.long, pytest.mark.gitops):
            item.add_marker(mark)


@pytest.fixture(scope="session")
def team(act, tmp_path_factory):
    """The team, with a runner."""
    with teams.running_team(program("gitea"), act, tmp_path_factory.mktemp("life")) as team:
        yield team
