"""Names of buckets: Google's rules, each with a name on its other side."""

import pytest

TAKEN = (
    "abc",
    "a-b_c",
    "b" * 63,
    "0abc9",
    "models.example.com",
    f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 30}",
    "goo-models",
    "1.2.3.4.5",
)
REFUSED = (
    *("", "ab", "b" * 64, "Abc", "a b", "-abc", "abc-", "_abc", "abc_", ".abc", "abc.", "a..b", "größe"),
    *("goog-models", "googly", "my-google", "google1", "my-g00gle", "my-g00gl3", "192.168.5.4", "a\nbc"),
    *(f"a.{'b' * 64}", f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 31}"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKEN)
def test_a_name_within_the_rules_is_taken(project, name: str) -> None:
    assert project.ok("POST", "/storage/v1/b", {"name": name}, project="bezel-local")["name"] == name


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_outside_of_the_rules_is_refused_in_googles_words(project, name: str) -> None:
    answer = project.call("POST", "/storage/v1/b", {"name": name}, project="bezel-local")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"Invalid bucket name: '{name}'"
    assert answer.json()["error"]["errors"][0]["reason"] == "invalid"
