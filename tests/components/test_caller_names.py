"""Messages name arguments as the package's schema does; those of a Python program stay."""

import pytest

from bezel_base.errors import Problem
from bezel_components.base.caller_names import SchemaNames, in_caller_words, problem_in_caller_words

NAMES = SchemaNames(["maxInstances", "public", "weights", "rollout", "servedModel"])


@pytest.mark.parametrize(
    ("python", "schema"),
    [
        ("raise scaling.max_instances", "raise scaling.maxInstances"),
        ("served_model is missing", "servedModel is missing"),
        ("set public=True", "set public: true"),
        ('set `rollout="direct"` and `depends_on`', "set `rollout: direct` and `dependsOn`"),
        ('set `weights={"loading": "fuse"}`', "set `weights: {loading: fuse}`"),
        ("max_instances=3", "maxInstances=3"),
    ],
)
def test_schema_names_replace_those_of_python(python: str, schema: str) -> None:
    assert NAMES.in_text(python) == schema


@pytest.mark.parametrize(
    "text", ["gcloud --public=True", "a_max_instances_b", "num_speculative_tokens", "MAX_INSTANCES"]
)
def test_other_words_stay_as_they_are(text: str) -> None:
    assert NAMES.in_text(text) == text


def test_value_of_a_problem_stays() -> None:
    problem = NAMES.in_problem(Problem("max_instances", "max_instances", "it is too low.", "set public=True."))
    assert problem == Problem("maxInstances", "max_instances", "it is too low.", "set public: true.")
    assert NAMES.in_problem("max_instances is refused") == "maxInstances is refused"


def test_python_program_reads_its_own_names() -> None:
    assert in_caller_words("raise max_instances") == "raise max_instances"
    assert problem_in_caller_words("raise max_instances") == "raise max_instances"
