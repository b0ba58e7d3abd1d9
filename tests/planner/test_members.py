"""Members are written in one of Google's forms; anything else is refused before IAM does so during a deploy."""

import pytest

from bezel.planner.base.members import member_problem


@pytest.mark.parametrize(
    "member",
    [
        "user:bob@example.com",
        "user:Bob.O'Neil+x@mail.example.co.uk",
        "group:team@example.com",
        "domain:example.com",
        "serviceAccount:caller@acme-llm.iam.gserviceaccount.com",
        "serviceAccount:caller@acme.example.com.iam.gserviceaccount.com",
        "serviceAccount:123-compute@developer.gserviceaccount.com",
        "serviceAccount:acme-llm@appspot.gserviceaccount.com",
        "serviceAccount:acme-llm.svc.id.goog[serving/app]",
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/subject/s",
        "principal://iam.googleapis.com/locations/global/workforcePools/p/subject/s",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/group/g",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
    ],
)
def test_a_form_of_googles_is_taken(member: str) -> None:
    assert member_problem(member) is None


@pytest.mark.parametrize(
    ("member", "repair"),
    [
        ("user:bob", "user:NAME@DOMAIN"),
        ("user:bob@localhost", "user:NAME@DOMAIN"),
        ("user:a b@example.com", "user:NAME@DOMAIN"),
        ("user:", "user:NAME@DOMAIN"),
        ("group:*", "group:NAME@DOMAIN"),
        ("domain:*", "domain:example.com"),
        ("domain:example", "domain:example.com"),
        ("domain:*.example.com", "domain:example.com"),
        ("serviceAccount:foo", "serviceAccount:NAME@PROJECT.iam.gserviceaccount.com"),
        ("serviceAccount:smoke@acme-llm.iam.gserviceaccount.com", "NAME has 6 to 30 characters"),
        (f"serviceAccount:{'a' * 31}@acme-llm.iam.gserviceaccount.com", "NAME has 6 to 30 characters"),
        ("serviceAccount:bob@example.com", "serviceAccount:NAME@PROJECT.iam.gserviceaccount.com"),
        ("principal:me", "principal://iam.googleapis.com"),
        ("principalSet://example.com/x", "principalSet://iam.googleapis.com"),
        ("user:app@acme.iam.gserviceaccount.com", "serviceAccount:app@acme.iam.gserviceaccount.com"),
        ("group:app@acme.iam.gserviceaccount.com", "serviceAccount:app@acme.iam.gserviceaccount.com"),
        ("bob@example.com", "user:NAME@DOMAIN"),
        ("Users:bob@example.com", "user:NAME@DOMAIN"),
        ("*", "user:NAME@DOMAIN"),
        ("", "user:NAME@DOMAIN"),
        ("user:bob@example.com\n", "user:NAME@DOMAIN"),
    ],
)
def test_another_form_is_refused_with_one_that_google_takes(member: str, repair: str) -> None:
    fault = member_problem(member)
    assert fault is not None
    assert fault[0].startswith("IAM refuses it")
    assert repair in fault[1]
