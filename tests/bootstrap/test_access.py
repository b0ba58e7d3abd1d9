"""What a job may do follows from its token: deploys from the main branch, previews from pull requests, else nothing."""

from __future__ import annotations

from typing import Any

import pytest

from bezel.foundation.settings import checked_settings
from bezel_bootstrap.access import attribute_condition, attribute_mapping
from bezel_localcloud.access.cel.evaluator import compile_expression
from tests.support.bootstrap.project import PROJECT, SETTINGS

SETTINGS_READ = checked_settings(SETTINGS, PROJECT)
JOB = {
    "sub": "repo:acme/llm:ref:refs/heads/main",
    "repository": "acme/llm",
    "repository_id": "4711",
    "ref": "refs/heads/main",
    "event_name": "push",
}
PULL = {"event_name": "pull_request", "ref": "refs/pull/7/merge"}


def evaluate(expression: str, claims: dict[str, Any]) -> object:
    return compile_expression(expression, ("assertion", "google", "attribute"))({"assertion": claims})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claims", "access"),
    [
        ({"environment": "dev"}, "deploy"),
        ({"environment": "prod", "event_name": "workflow_dispatch"}, "deploy"),
        ({"environment": "dev", "event_name": "schedule"}, "deploy"),
        ({"event_name": "schedule"}, "preview"),
        ({}, "preview"),
        (PULL, "preview"),
        # A pull request may name an environment in the workflow that it brings along.
        (PULL | {"environment": "prod"}, "preview"),
        ({"environment": "prod", "ref": "refs/heads/feature"}, "nothing"),
        ({"ref": "refs/heads/feature"}, "nothing"),
        ({"ref": "refs/tags/main"}, "nothing"),
        ({"ref": "refs/heads/main2", "environment": "dev"}, "nothing"),
        ({"environment": "staging"}, "nothing"),
        # These run with the main branch as their ref, on behalf of a pull request of anybody.
        ({"event_name": "pull_request_target", "environment": "prod"}, "nothing"),
        ({"event_name": "pull_request_target"}, "nothing"),
        ({"event_name": "issue_comment", "environment": "prod"}, "nothing"),
        ({"event_name": "workflow_run", "environment": "prod"}, "nothing"),
    ],
)
def test_a_job_s_access_follows_from_its_token(claims: dict[str, Any], access: str) -> None:
    assert evaluate(attribute_mapping(SETTINGS_READ)["attribute.access"], JOB | claims) == access


@pytest.mark.parametrize("claims", [{}, PULL, {"environment": "prod"}])
def test_every_attribute_of_every_job_is_a_text(claims: dict[str, Any]) -> None:
    attributes = attribute_mapping(SETTINGS_READ)
    assert all(isinstance(evaluate(expression, JOB | claims), str) for expression in attributes.values())


@pytest.mark.parametrize(
    ("claims", "accepted"),
    [
        ({}, True),
        (PULL, True),
        ({"repository_id": "4712"}, False),
        ({"repository_id": "4712", "repository": "acme/llm"}, False),  # the name was given up, and taken by another
        ({"repository": "acme/renamed"}, True),
    ],
)
def test_only_jobs_of_the_repository_get_an_identity(claims: dict[str, Any], accepted: bool) -> None:
    assert evaluate(attribute_condition(SETTINGS_READ), JOB | claims) is accepted


PINNED = "acme/pipelines/.github/workflows/deploy.yml@" + "a" * 40


@pytest.mark.parametrize(
    ("claims", "access"),
    [
        ({"job_workflow_ref": PINNED}, "deploy"),
        ({"job_workflow_ref": PINNED[:-1] + "b"}, "nothing"),
        ({"job_workflow_ref": "acme/llm/.github/workflows/deploy.yml@refs/heads/main"}, "nothing"),
        ({"job_workflow_ref": PINNED, "ref": "refs/heads/feature"}, "nothing"),
        ({"job_workflow_ref": PINNED, "environment": "staging"}, "nothing"),
        (PULL | {"job_workflow_ref": "acme/llm/.github/workflows/preview.yml@refs/pull/7/merge"}, "preview"),
    ],
)
def test_only_the_steps_of_a_pinned_workflow_may_deploy(claims: dict[str, Any], access: str) -> None:
    settings = checked_settings(SETTINGS | {"deploy_workflows": [PINNED]}, PROJECT)
    assert evaluate(attribute_mapping(settings)["attribute.access"], JOB | {"environment": "prod"} | claims) == access
