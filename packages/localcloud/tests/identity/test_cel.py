"""The Common Expression Language of attribute mappings and conditions: its values, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.access.cel.evaluator import compile_expression
from bezel_localcloud.access.cel.syntax import CelError
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
    return compile_expression(expression, ["assertion"])({"assertion": CLAIMS})


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
        "-dyn('a') == 1",
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
        "bytes('a')",
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


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true == dyn(1) || [true] == dyn([1])", False),
        ("dyn(1) == 1.0 && [1] == dyn([1.0])", True),
        ("double('NaN') == double('NaN') || [double('NaN')] == [double('NaN')]", False),
        ("{true: 'a'}[true] + {1: 'b'}[dyn(1.0)]", "ab"),
        ("dyn(1) in {true: 'a'}", False),
        ("false < true && 1 < 2.5", True),
        ("[1, 0].exists(item, 1 / item > 0) && ![0, 1].all(item, 1 / item > 5)", True),
        ("[1, 2, 2].exists_one(item, item == 1)", True),
        ("[1, 2, 3].map(item, item > 1, item * 2) == [4, 6]", True),
        ("1.0 / 0.0 > 1e308 && -9223372036854775808 < 0 && 0xff == 255", True),
        ("string(1.0) + string(1e21) + string(0.5) + string(true)", "11e+210.5true"),
        ('\'a\\x41\\101\' + r\'\\\' + """b"c""" // a comment', 'aAA\\b"c'),
        ("timestamp('2026-11-18T12:00:00.5+01:00') == timestamp('2026-11-18T11:00:00.500Z')", True),
        ("string(timestamp(0) + duration('1h30m0.5s'))", "1970-01-01T01:30:00.5Z"),
        ("duration('3730s').getMinutes() == 62 && string(duration('-1.5s')) == '-1.5s'", True),
        ("int(timestamp('1969-12-31T23:59:59Z')) == -1", True),
        ("'Abc'.split('').join('-')", "A-b-c"),
    ],
)
def test_expression_follows_the_languages_definition(expression, expected):
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("1 == 'a'", "no matching overload for '==' applied to (int, string)"),
        ("-'a' == 1", "no matching overload for '-' applied to (string)"),
        ("1 + 1.0", "applied to (int, double)"),
        ("[1, 2][0.5] == 1", "applied to (list(int), double)"),
        ("{[1]: 2} == {}", "not list(int)"),
        ("true ? 1 : 'a'", "applied to (bool, int, string)"),
        ("'a'.startsWith(1)", "applied to (string, int)"),
        ("[1].all(item, item + 1)", "neither true nor false"),
        ("'a'.all(item, true)", "not of string"),
        ("'a'.b", "has no field 'b'"),
        ("[1].map(item, item) == [item]", "undeclared reference to 'item'"),
        ("timestamp('2026-02-30T00:00:00Z') > timestamp(0)", "expected a moment of the calendar"),
        ("1u == 1u", "unsigned numbers"),
        ("b'a' == b'a'", "texts of bytes"),
        ("assertion.?sub", "optional fields"),
        ("Message{}", "messages"),
        ("'\\q' == 'q'", "no escape sequence"),
        ("let == 1", "reserved word"),
    ],
)
def test_expression_of_the_wrong_types_is_refused(expression, reason):
    with pytest.raises(CelError) as refused:
        value(expression)
    assert reason in str(refused.value)


@pytest.mark.slow
@given(st.text(alphabet="!&|()[]{}\"'=<>?:.,+-*/% asertion2", max_size=40))
def test_no_text_is_more_than_not_understood(text):
    try:
        value(text)
    except (CelError, EvaluationError) as error:
        assert str(error)  # noqa: PT017 - either end is right
