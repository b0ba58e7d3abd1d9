"""Injected failures of token exchange and of the operations on pools, in the form that Google's have."""

import pytest

from localcloud_support import federation as at

AUDIENCE = f"https:{at.AUDIENCE}"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text"), [("server-errors", "unavailable"), ("rate-limited", "Rate exceeded")])
def test_an_exchange_fails_as_often_as_it_is_told_in_oauth_s_form(kind, text, project, issuer):
    project.cloud.faults.add(kind, {"at": "token", "path": "/sts/*", "count": 1})
    assert text in at.exchange(project, issuer.token(AUDIENCE))["error_description"]
    assert "access_token" in at.exchange(project, issuer.token(AUDIENCE))


@pytest.mark.slow
def test_a_fault_of_the_apis_leaves_the_exchange_alone(project, issuer):
    project.cloud.faults.add("server-errors", {"at": "api", "count": 0})
    assert "access_token" in at.exchange(project, issuer.token(AUDIENCE))
    assert project.call("GET", at.POOL).status_code == 503


@pytest.mark.slow
@pytest.mark.usefixtures("issuer")
def test_an_operation_on_a_pool_fails_late_or_never_ends(project):
    project.cloud.faults.add("operation-fails-late", {"api": "iam"})
    operation = project.ok("PATCH", at.POOL, {"description": "x"}, updateMask="description")
    assert at.finish(project, operation)["code"] == 13
    project.cloud.faults.clear()
    project.cloud.faults.add("operation-never-ends", {"api": "iam"})
    operation = project.ok("PATCH", at.POOL, {"description": "y"}, updateMask="description")
    project.passes(600)
    assert "done" not in project.ok("GET", f"/iam/v1/{operation['name']}")


@pytest.mark.usefixtures("issuer")
def test_a_fault_of_another_api_leaves_pools_alone(project):
    project.cloud.faults.add("operation-fails-late", {"api": "run"})
    operation = project.ok("PATCH", at.POOL, {"description": "x"}, updateMask="description")
    assert at.finish(project, operation)["description"] == "x"
