"""The Common Expression Language of attribute mappings and conditions: its values, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.access.cel.evaluator import CelError, parsed
from bezel_localcloud.access.cel.values import EvaluationError

CLAIMS = {
    "sub": "repo:example/bezel:ref:refs/heads/main",
    "ref": "refs/heads/main",
    "event_name": "push",
    "repository_id": "12",
    "run_attempt": 2,
    "protected": True,
    "teams": ["admins", "devs"],
    "job": {"name": "deploy"},
    "arn": "arn:aws:sts::1:assumed-role/deployer/session",
}


def value(expression):
    return parsed(expression, ["assertion"])({"assertion": CLAIMS})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("assertion.sub", CLAIMS["sub"]),
        ("assertion['ref']", "refs/heads/main"),
        ("assertion.repository_id == '12' && assertion.ref == \"refs/heads/main\"", True),
        ("assertion.repository_id == 12", False),
        ("assertion.run_attempt == 2 && assertion.run_attempt < 3 && assertion.run_attempt >= 2", True),
        ("assertion.protected", True),
        ("!assertion.protected", False),
        ("assertion.event_name in ['push', 'schedule']", True),
        ("'admins' in assertion.teams", True),
        ("'environment' in assertion", False),
        ("'environment' in assertion ? assertion.environment : 'none'", "none"),
        ("has(assertion.environment)", False),
        ("has(assertion.job.name)", True),
        ("assertion.missing == 'x' || assertion.protected", True),
        ("!assertion.protected && assertion.missing == 'x'", False),
        ("assertion.sub.startsWith('repo:example/') && !assertion.sub.endsWith(':pull_request')", True),
        ("assertion.sub.contains('bezel')", True),
        ("assertion.sub.matches('^repo:example/[a-z]+:')", True),
        ("assertion.ref.split('/')[2]", "main"),
        ("assertion.arn.extract('assumed-role/{role}/')", "deployer"),
        ("assertion.arn.extract('other/{role}/')", ""),
        ("assertion.event_name + '/' + string(assertion.run_attempt)", "push/2"),
        ("assertion.event_name.upperAscii()", "PUSH"),
        ("size(assertion.teams) == assertion.teams.size()", True),
        ("assertion.teams.exists(team, team == 'devs')", True),
        ("assertion.teams.all(team, team.startsWith('d'))", False),
        ("assertion.teams.filter(team, team != 'devs')", ["admins"]),
        ("assertion.teams.map(team, 'x-' + team)[1]", "x-devs"),
        ("{'main': 'deploy'}[assertion.ref.split('/')[2]]", "deploy"),
        ("1 + 2 * 3 - 4 == 3", True),
        ("'a\\n\\u0041' == \"a\\x0aA\"", True),
        ("r'a\\n' == 'a\\\\n'", True),
        ("(true ? 1 : 2) == 1", True),
        ("1" + "+1" * 249, 250),
    ],
)
def test_an_expression_has_its_value(expression, expected):
    assert value(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "assertion.missing",
        "assertion.teams[5]",
        "assertion.sub && true",
        "assertion.sub < 3",
        "1 / 0 == 1",
        "-'a' == 1",
    ],
)
def test_an_expression_without_a_value_is_neither_true_nor_false(expression):
    with pytest.raises(EvaluationError):
        value(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "assertion.",
        "assertion.sub ==",
        "token.sub == 'x'",
        "assertion.sub == 'x",
        "assertion.sub = 'x'",
        "assertion.sub.format('x')",
        "duration('1s')",
        "has(assertion)",
        "(assertion.sub",
        "assertion.sub 'x'",
        "(" * 60 + "true" + ")" * 60,
        "1" + "+1" * 300,
        "assertion" + ".job" * 300,
    ],
)
def test_what_is_not_understood_is_refused_when_it_is_parsed(expression):
    with pytest.raises(CelError):
        value(expression)


@pytest.mark.slow
@given(st.text(alphabet="!&|()[]{}\"'=<>?:.,+-*/% asertion2", max_size=40))
def test_no_text_is_more_than_not_understood(text):
    try:
        value(text)
    except (CelError, EvaluationError) as error:
        assert str(error)  # noqa: PT017 - either end is right
