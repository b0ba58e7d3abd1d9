"""Custom roles: what they grant, where their condition holds, and that a deleted or disabled one grants nothing."""

import pytest

from localcloud_support import federation as at
from localcloud_support.in_process import PARENT, Project

ROLES = f"/iam/v1/{PARENT}/roles"
ROLE = f"{ROLES}/reader"
NAME = f"{PARENT}/roles/reader"
ACCOUNT = f"serviceAccount:{at.ACCOUNT}"
DAY = 86_400


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    at.enable(project)
    project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "pipeline", "serviceAccount": {}})
    yield project
    project.close()


def make(project, *permissions, **changed):
    role = {"title": "Reads", "includedPermissions": list(permissions), "stage": "GA"} | changed
    return project.ok("POST", ROLES, {"roleId": "reader", "role": role})


def grant(project, role=NAME, condition=None):
    path = f"/crm/v1/{PARENT}"
    policy = project.ok("POST", f"{path}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}})
    binding = {"role": role, "members": [ACCOUNT]} | ({"condition": condition} if condition else {})
    policy["bindings"].append(binding)
    return project.call("POST", f"{path}:setIamPolicy", {"policy": policy | {"version": 3}})


def status(project, verb, path, **query):
    """The status of a call by the account."""
    owner_token, project.token = project.token, project.cloud.tokens.access_token(at.ACCOUNT, at.SCOPE)[0]
    try:
        return project.call(verb, path, **query).status_code
    finally:
        project.token = owner_token


def test_a_role_grants_its_permissions_and_no_other(project):
    make(project, "iam.roles.list", "iam.serviceAccounts.get")
    assert grant(project).status_code == 200
    assert status(project, "GET", ROLES) == 200
    assert status(project, "GET", ROLE) == 403
    assert status(project, "GET", f"/iam/v1/{PARENT}/serviceAccounts") == 403


def test_a_changed_role_changes_what_it_granted(project):
    make(project, "iam.roles.list")
    grant(project)
    project.ok("PATCH", ROLE, {"includedPermissions": ["iam.roles.get"]}, updateMask="includedPermissions")
    assert (status(project, "GET", ROLES), status(project, "GET", ROLE)) == (403, 200)
    project.ok("PATCH", ROLE, {"title": "Reads", "stage": "DISABLED", "includedPermissions": ["iam.roles.get"]})
    assert status(project, "GET", ROLE) == 403


def test_a_deleted_role_grants_nothing_until_it_is_restored(project):
    make(project, "iam.roles.list")
    grant(project)
    assert project.ok("DELETE", ROLE)["deleted"] is True
    assert status(project, "GET", ROLES) == 403
    assert project.ok("GET", ROLE)["deleted"] is True
    assert project.ok("GET", ROLES) == {}
    refused = project.refusal(400, "POST", ROLES, {"roleId": "reader", "role": {"title": "x"}})
    assert refused["message"] == "You can't create a role_id (reader) which has been marked for deletion."
    assert "deleted" not in project.ok("POST", f"{ROLE}:undelete", {})
    assert status(project, "GET", ROLES) == 200


def test_a_role_can_be_restored_for_a_week(project):
    """A role can be restored for a week and its name is free after a month more."""
    make(project, "iam.roles.list")
    project.ok("DELETE", ROLE)
    project.passes(8 * DAY)
    project.refusal(400, "POST", f"{ROLE}:undelete", {})
    project.passes(30 * DAY)
    project.refusal(404, "GET", ROLE)
    make(project, "iam.roles.list")


def test_a_condition_limits_a_custom_role(project):
    make(project, "iam.roles.get")
    other = project.ok("POST", ROLES, {"roleId": "other", "role": {"title": "Other"}})["name"]
    condition = {"title": "one", "expression": f'resource.name == "{other}"'}
    assert grant(project, condition=condition).status_code == 200
    assert status(project, "GET", f"/iam/v1/{other}") == 200
    assert status(project, "GET", ROLE) == 403


def test_a_role_of_a_policy_must_exist(project):
    answer = grant(project)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"Role ({NAME}) does not exist in the resource's hierarchy."


def test_a_list_shows_permissions_only_where_asked(project):
    make(project, "iam.roles.list")
    assert "includedPermissions" not in project.ok("GET", ROLES)["roles"][0]
    assert project.ok("GET", ROLES, view="FULL")["roles"][0]["includedPermissions"] == ["iam.roles.list"]


def test_an_early_stage_is_not_shown(project):
    assert "stage" not in make(project, "iam.roles.list", stage="ALPHA")


def test_a_change_of_an_old_reading_is_refused(project):
    made = make(project, "iam.roles.list")
    project.ok("PATCH", ROLE, {"title": "New", "etag": made["etag"]}, updateMask="title")
    project.refusal(409, "PATCH", ROLE, {"title": "Newer", "etag": made["etag"]}, updateMask="title")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role_id", "role", "text"),
    [
        ("a-b", {"title": "x"}, "role_id"),
        ("ab", {"title": "x"}, "role_id"),
        ("reader", {"title": "x" * 101}, "title"),
        ("reader", {"includedPermissions": ["run.*"]}, "Permission run.* is not valid."),
        ("reader", {"includedPermissions": ["roles/viewer"]}, "Permission roles/viewer is not valid."),
    ],
)
def test_a_role_of_another_form_is_refused(role_id, role, text, project):
    assert text in project.refusal(400, "POST", ROLES, {"roleId": role_id, "role": role})["message"]


def test_a_taken_name_is_refused(project):
    make(project, "iam.roles.list")
    refused = project.refusal(409, "POST", ROLES, {"roleId": "reader", "role": {"title": "x"}})
    assert refused["message"] == f"A role named reader in {PARENT} already exists."
