"""Google's clients with localcloud's credential file of the type external_account, unmodified, at its address."""

import json

import pytest

from tests.support.clients import environment, programs

pytestmark = [pytest.mark.slow, pytest.mark.clients]
# They sign with a key, which such a file has not: so at Google.
WITH_A_KEY = {"go": {"Bucket.SignedURL, version 2", "Bucket.SignedURL, version 4"}}


@pytest.fixture
def own_variables(variables, endpoint):
    """The variables of `bezel local env` with the other file, and no way out of this machine."""
    return variables | {
        "GOOGLE_APPLICATION_CREDENTIALS": str(endpoint.external_account),
        "API_ENDPOINT_OVERRIDE": endpoint.base,
        "TRIED_ENDPOINT": endpoint.base,
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "NO_PROXY": "127.0.0.1",
    }


def command_of(name, own_variables):
    match name:
        case "go":
            return [environment.go_tool("google_storage")]
        case "node":
            own_variables["NODE_PATH"] = str(environment.npm("storage") / "node_modules")
            return ["node", programs.PROGRAMS / "external_account.cjs"]
    return [environment.python("storage"), programs.PROGRAMS / "external_account.py"]


@pytest.mark.wide_except("python")
@pytest.mark.parametrize("name", ["go", "node", "python"])
def test_the_file_gives_credentials_to_clients_of_every_language(own_variables, name):
    made = programs.run(command_of(name, own_variables), own_variables, timeout=300)
    failed = {call.name: call.text for call in made if call.outcome == "failed"}
    assert failed.keys() == WITH_A_KEY.get(name, set()), failed
    assert sum(call.outcome == "passed" for call in made) >= 4


def test_a_client_with_another_token_in_the_file_is_refused(own_variables, endpoint, tmp_path):
    """The negative twin."""
    token, file = tmp_path / "token", tmp_path / "file.json"
    token.write_text("a.b.c")
    content = json.loads(endpoint.external_account.read_text())
    file.write_text(json.dumps(content | {"credential_source": {"file": str(token)}}))
    own_variables["GOOGLE_APPLICATION_CREDENTIALS"] = str(file)
    made = programs.run(command_of("python", own_variables), own_variables)
    assert {call.outcome for call in made} == {"failed"}
    assert all("invalid_grant" in call.text for call in made)
