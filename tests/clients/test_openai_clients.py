"""OpenAI's packages and what is built on them, unmodified, through the front of a service with a simulated vLLM."""

import pytest

from tests.support.clients import environment, programs
from tests.support.clients.service import NAME, service

pytestmark = [pytest.mark.slow, pytest.mark.clients]


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    with service(tmp_path_factory.mktemp("service")) as service_variables:
        yield service_variables


def check(variables, command, *not_served, **more):
    calls = programs.run([*command, NAME], variables | more)
    programs.assert_served(calls, not_served=not_served)
    programs.check_openai(calls)


def test_openai_for_python_works_unmodified(variables):
    check(variables, [environment.python("openai"), programs.PROGRAMS / "openai_python.py"], "models retrieve")


def test_openai_for_node_works_unmodified(variables):
    modules = environment.npm("openai") / "node_modules"
    check(variables, ["node", programs.PROGRAMS / "openai_node.cjs"], NODE_PATH=str(modules))


@pytest.mark.long
@pytest.mark.parametrize("package", ["litellm", "langchain"])
def test_packages_on_top_of_openai_work_unmodified(variables, package):
    # Else litellm fetches its list of prices from the internet at each start.
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    check(variables, [environment.python("openai"), programs.PROGRAMS / f"{package}_calls.py"], **offline)


def test_a_caller_without_an_identity_is_refused(variables):
    """The negative twin: with another key no call succeeds but the one that expects the refusal."""
    modules = environment.npm("openai") / "node_modules"
    wrong = {"OPENAI_API_KEY": "sk-wrong", "NODE_PATH": str(modules)}
    calls = programs.run(["node", programs.PROGRAMS / "openai_node.cjs", NAME], variables | wrong)
    assert {call.name for call in calls if call.outcome == "passed"} == {"wrong key"}
