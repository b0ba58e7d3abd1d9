"""A live service is read from Cloud Run with its callers, as far as the caller may read them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.conversion.conversion import Conversion
from bezel.conversion.converted import Wishes
from bezel.conversion.sources import convert_source
from bezel.rest import ApiError, Credentials, GoogleClient
from bezel_base.errors import UserError
from tests.support.conversion.six_inputs import LIVE
from tests.support.rest.fake_google import Answer, Call, Server, key_file, serving, token_route

NAME = "projects/acme-llm/locations/us-east4/services/chat"
POLICY = {
    "bindings": [
        {
            "role": "roles/run.invoker",
            "members": ["group:chat@acme.example", "user:b@acme.example"],
        },
        {"role": "roles/run.admin", "members": ["user:a@acme.example"]},
    ]
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        made.routes.append(token_route())
        yield made


def conversion_of(server: Server, folder: Path, source: str, **wishes: str) -> Conversion:
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(key_file(folder, server))}
    with GoogleClient(Credentials(environ=environ)) as client:
        endpoint = f"{server.url}/v2/"
        return convert_source(source, folder=folder, wishes=Wishes(**wishes), google=lambda: client, endpoint=endpoint)


def answer(server: Server, *, policy: Answer) -> None:
    def route(call: Call) -> Answer | None:
        if call.path == f"/v2/{NAME}":
            return Answer(json=LIVE)
        return policy if call.path == f"/v2/{NAME}:getIamPolicy" else None

    server.routes.append(route)


@pytest.mark.parametrize("source", ["chat", NAME])
def test_a_service_is_converted_with_its_callers(server: Server, tmp_path: Path, source: str) -> None:
    answer(server, policy=Answer(json=POLICY))
    made = conversion_of(server, tmp_path, source, project="acme-llm", region="us-east4")
    members = ["group:chat@acme.example", "user:b@acme.example"]
    assert made.converted.settings["access"] == {"invokers": members}
    assert "IAM policy, roles/run.admin: user:a@acme.example" in made.text()
    assert made.plan is not None


def test_a_service_that_everyone_may_call_stays_public(server: Server, tmp_path: Path) -> None:
    public = {"bindings": [{"role": "roles/run.invoker", "members": ["allUsers"]}]}
    answer(server, policy=Answer(json=public))
    made = conversion_of(server, tmp_path, NAME)
    assert made.converted.settings["access"] == {"public": True}


def test_callers_that_may_not_be_read_are_not_known(server: Server, tmp_path: Path) -> None:
    answer(server, policy=Answer(403, json={"error": {"code": 403, "message": "denied"}}))
    made = conversion_of(server, tmp_path, NAME)
    assert "access" not in made.converted.settings
    assert "IAM policy: you may not read it" in made.text()


def test_another_answer_than_a_refusal_ends_the_conversion(server: Server, tmp_path: Path) -> None:
    answer(server, policy=Answer(400, json={"error": {"code": 400, "message": "bad"}}))
    with pytest.raises(ApiError):
        conversion_of(server, tmp_path, NAME)


def test_a_service_that_does_not_exist_is_refused_by_its_name(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Cloud Run has no such service") as caught:
        conversion_of(server, tmp_path, "other", project="acme-llm", region="us-east4")
    assert "services/other" in str(caught.value)
