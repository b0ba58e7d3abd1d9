"""PromQL on localcloud: the answers of Prometheus's own engine to the same queries over the same series."""

import json
from pathlib import Path

from localcloud_support.promql_questions import answer, differ, queries, reference_answer

ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())["answers"]


def test_every_query_has_the_answer_of_prometheus():
    asked = [list(question) for question in queries()]
    assert [question for question, _ in ANSWERS] == asked, "run python -m tools.traffic.promql_answers"
    different = [
        question for question, answered in ANSWERS if differ(answer(*question), reference_answer(answered, question[0]))
    ]
    assert different == []
    assert len(asked) >= 200


def test_an_answer_that_is_off_by_a_little_is_seen():
    compared = 0
    for question, answered in ANSWERS:
        expected = reference_answer(answered, question[0])
        if isinstance(expected, str) or not expected:
            continue
        compared += 1
        labels = next(iter(expected))
        time, value = next(iter(expected[labels].items()))
        other = value + 1e-6 if isinstance(value, float) and abs(value) < 100 else f"{value}x"
        assert differ(expected, expected | {labels: expected[labels] | {time: other}}), question
        assert differ(expected, {key: points for key, points in expected.items() if key != labels}), question
    assert compared >= 200
